// Attention by layer and head: as lines, as a grid, and all heads as small pictures.

import { colourOf, drawing, element, percent, rove } from "./dom.js";
import { Part } from "./part.js";

const ROW = 26;  // pixels, as in style.css
const HEAD = 34;  // pixels of a head's small picture with its gap, as in style.css
const NARROWEST = 240;  // pixels of the column of all heads, whose note is text
const FAINTEST = 0.01;  // thinner lines would be hundreds, and none of them seen
const STRONG = 2;  // times an even share: what is drawn of all pieces at once, so that it can be read
const MOST_LINES = 2000;  // the strongest are drawn: more are a grey area, and slow

export function makeAttention(app) {
  const { t, model } = app;
  const layer = document.getElementById("layer");
  const head = document.getElementById("head");
  const special = document.getElementById("special");
  const view = () => document.querySelector("[name=view]:checked").value;

  app.onLanguage(() => {
    for (const [list, count] of [[layer, model.layers], [head, model.heads]]) {
      const chosen = list.value || "0";
      const options = Array.from({ length: count }, (_, i) => element("option", { value: i + 1, text: i + 1 }));
      list.replaceChildren(element("option", { value: 0, text: t("average") }), ...options);
      list.value = chosen;
    }
  });

  const question = () => {
    const row = app.row();
    return ["attention", { ...row, layer: Number(layer.value), head: Number(head.value) }];
  };
  const main = new Part(app, "attention", question, (answer, body, target) => {
    const kept = answer.pieces.map((_, i) => i)
      .filter((i) => !special.checked || answer.spans[i] !== null);
    (view() === "grid" ? drawGrid : drawLines)(app, answer, kept, target);
  });
  const all = new Part(app, "heads", () => ["heads", app.row()], (answer, body, target) => {
    drawHeads(app, answer, target, Number(layer.value), Number(head.value), (l, h) => {
      layer.value = l;
      head.value = h;
      main.refresh();
    });
  });
  for (const list of [layer, head]) {
    list.addEventListener("change", () => { main.refresh(); all.render(); });
  }
  for (const choice of [special, ...document.querySelectorAll("[name=view]")]) {
    choice.addEventListener("change", () => main.render());
  }
  return [main, all];
}

function drawLines(app, { pieces, weights }, kept, target) {
  const { t } = app;
  const svg = drawing("svg", { viewBox: `0 0 100 ${ROW * kept.length}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  svg.style.height = `${ROW * kept.length}px`;
  const left = kept.map((i) => element("button", { type: "button", class: "row", text: pieces[i], "aria-pressed": "false" }));
  const shares = kept.map(() => element("span", { class: "share" }));
  const right = kept.map((i, k) => element("div", { class: "row" }, pieces[i], shares[k]));
  const readout = element("p", { class: "readout", role: "status" });
  const most = largest(weights, kept);
  const strongest = kept.map((from) => Math.max(...kept.map((to) => weights[from][to])));
  let pinned = null;

  function show(only) {
    const found = [];
    kept.forEach((from, row) => {
      left[row].setAttribute("aria-pressed", String(row === only));
      if (only !== null && row !== only) return;
      kept.forEach((to, column) => {
        const weight = weights[from][to];
        const least = only === null ? Math.min(STRONG / pieces.length, strongest[row]) : FAINTEST;
        if (weight >= least) found.push({ row, column, strength: weight / most });
      });
    });
    found.sort((a, b) => b.strength - a.strength);
    svg.replaceChildren(...found.slice(0, MOST_LINES).map(({ row, column, strength }) => drawing("line", {
      x1: 0, x2: 100, y1: (row + 0.5) * ROW, y2: (column + 0.5) * ROW,
      "stroke-opacity": Math.max(0.06, strength), "stroke-width": 1 + 3 * strength,
    })));
    kept.forEach((to, column) => {
      shares[column].textContent = only === null ? "" : percent(weights[kept[only]][to]);
    });
    readout.textContent = only === null ? "" : told(kept[only]);
  }

  function told(from) {
    const best = [...kept].sort((a, b) => weights[from][b] - weights[from][a]).slice(0, 3);
    return best.map((to) => t("cell", { from: pieces[from], to: pieces[to], share: percent(weights[from][to]) })).join(" · ");
  }

  left.forEach((button, row) => {
    button.addEventListener("mouseenter", () => show(row));
    button.addEventListener("focus", () => show(row));
    button.addEventListener("click", () => { pinned = pinned === row ? null : row; show(pinned); });
  });
  const first = element("div", { class: "side left", role: "group", "aria-label": t("from") }, element("h3", { text: t("from") }), ...left);
  rove(first, left);
  const back = () => show(pinned);
  first.addEventListener("mouseleave", back);
  first.addEventListener("focusout", back);
  const second = element("div", { class: "side" }, element("h3", { text: t("to") }), ...right);
  target.append(readout, element("div", { class: "lines", lang: "ko" }, first, svg, second));
  show(null);
}

function largest(weights, kept) {
  return Math.max(...kept.map((i) => Math.max(...kept.map((j) => weights[i][j]))), 1e-9);
}

function drawGrid(app, { pieces, weights }, kept, target) {
  const { t } = app;
  const count = kept.length;
  const named = count <= 128;  // beyond it cells are smaller than names
  const side = named ? Math.max(12, Math.min(30, Math.floor(560 / count))) : 4;
  const margin = named ? 84 : 4;  // pixels for the names of the pieces
  const size = margin + side * count;
  const canvas = element("canvas", { tabindex: "0", role: "img", "aria-label": t("attention_note") });
  const readout = element("p", { class: "readout", role: "status" });
  const ratio = window.devicePixelRatio || 1;
  canvas.width = canvas.height = size * ratio;
  canvas.style.width = canvas.style.height = `${size}px`;
  target.append(readout, element("div", { class: "scroll grid" }, canvas));
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const colour = colourOf(canvas);
  const ink = getComputedStyle(target).color;
  const most = largest(weights, kept);
  let at = [0, 0];

  function name(piece) {
    let shown = piece;
    while (context.measureText(shown).width > margin - 10) shown = `${shown.slice(0, -2)}…`;
    return shown;
  }

  function paint() {
    context.font = "12px system-ui, 'Noto Sans KR', 'Noto Sans CJK KR', sans-serif";
    context.fillStyle = ink;
    context.textBaseline = "middle";
    kept.forEach((i, row) => {
      if (!named) return;
      context.textAlign = "right";
      context.fillText(name(pieces[i]), margin - 6, margin + (row + 0.5) * side);
      context.save();
      context.translate(margin + (row + 0.5) * side, margin - 6);
      context.rotate(-Math.PI / 2);
      context.textAlign = "left";
      context.fillText(name(pieces[i]), 0, 0);
      context.restore();
    });
    kept.forEach((from, row) => kept.forEach((to, column) => {
      context.fillStyle = `rgba(${colour}, ${weights[from][to] / most})`;
      context.fillRect(margin + column * side, margin + row * side, side - 1, side - 1);
    }));
  }

  const base = element("canvas", { width: canvas.width, height: canvas.height });

  function point() {
    const [row, column] = at;
    context.clearRect(0, 0, size, size);
    context.drawImage(base, 0, 0, size, size);
    context.strokeStyle = ink;
    context.lineWidth = 2;
    context.strokeRect(margin + column * side, margin + row * side, side - 1, side - 1);
    const [from, to] = [kept[row], kept[column]];
    readout.textContent = t("cell", { from: pieces[from], to: pieces[to], share: percent(weights[from][to]) });
  }

  const follow = (event) => {
    const place = [event.offsetY, event.offsetX].map((v) => Math.floor((v - margin) / side));
    if (place.every((v) => v >= 0 && v < count)) { at = place; point(); }
  };
  canvas.addEventListener("pointermove", follow);
  canvas.addEventListener("pointerdown", follow);
  canvas.addEventListener("focus", point);
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    at = at.map((v, i) => Math.max(0, Math.min(count - 1, v + step[i])));
    point();
  });
  paint();
  base.getContext("2d").drawImage(canvas, 0, 0);
}

function drawHeads(app, { cells, heads }, target, layer, head, choose) {
  const { t } = app;
  const columns = heads[0].length;
  const group = element("div", { class: "heads", role: "group", "aria-label": t("all_heads") });
  group.style.gridTemplateColumns = `repeat(${columns + 1}, auto)`;
  // Beside the lines where there is room for a row of heads, else below them.
  target.parentElement.style.flexBasis = `${Math.max(NARROWEST, HEAD * (columns + 1))}px`;
  target.append(element("div", { class: "scroll" }, group));
  const buttons = [];
  group.append(element("span"), ...heads[0].map((_, h) => element("span", { text: h + 1 })));
  heads.forEach((row, l) => {
    group.append(element("span", { text: l + 1 }));
    row.forEach((levels, h) => {
      const canvas = element("canvas", { width: cells, height: cells });
      const label = t("head_label", { layer: l + 1, head: h + 1 });
      const button = element("button", { type: "button", title: label, "aria-label": label, "aria-pressed": String(l + 1 === layer && h + 1 === head) }, canvas);
      button.addEventListener("click", () => {
        buttons.forEach((each) => each.setAttribute("aria-pressed", String(each === button)));
        choose(l + 1, h + 1);
      });
      group.append(button);
      buttons.push(button);
      const context = canvas.getContext("2d");
      const image = context.createImageData(cells, cells);
      const [red, green, blue] = colourOf(canvas);
      levels.forEach((level, i) => image.data.set([red, green, blue, level], 4 * i));
      context.putImageData(image, 0, 0);
    });
  });
  const chosen = layer && head ? (layer - 1) * columns + head - 1 : 0;
  rove(group, buttons, columns, chosen);
}
