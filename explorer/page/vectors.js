// Nearest words, two texts, nearest texts, one word in two sentences.

import { bars, drawing, element, percent } from "./dom.js";
import { Part } from "./part.js";

const field = (id) => document.getElementById(id);
const PIXELS = 360;  // the picture's side in its own measure
const MARGIN = 34;  // of it: beyond the outermost points, for their labels

export function makeNeighbours(app) {
  field("word").addEventListener("input", app.typed);
  const question = () => {
    const word = field("word").value.trim();
    return word ? ["neighbours", { word, top: 15 }] : "write_word";
  };
  return [new Part(app, "neighbours", question, (answer, body, target) => {
    const rows = answer.neighbours.map((each) => ({
      label: each.piece, value: each.similarity, shown: each.similarity.toFixed(3),
    }));
    target.append(
      element("p", { text: app.t("word_pieces", { pieces: answer.pieces.join(" ") }) }),
      bars(rows, app.t("tab_neighbours")));
  })];
}

function byLayer(app, similarities, chosen) {
  const rows = similarities.map((value, i) => ({
    label: i ? app.t("layer_number", { number: i }) : app.t("layer_number", { number: app.t("layer_0") }),
    value, shown: value.toFixed(3), chosen: i === chosen,
  }));
  return [element("h2", { text: app.t("by_layer") }), bars(rows, app.t("by_layer"))];
}

export function makeSimilarity(app) {
  for (const id of ["first-text", "other-text"]) field(id).addEventListener("input", app.typed);
  field("pooling").addEventListener("change", app.changed);
  const question = () => {
    const [first, second] = [field("first-text").value, field("other-text").value];
    if (!first.trim() || !second.trim()) return "write_both";
    return ["similarity", { first, second, pooling: field("pooling").value }];
  };
  return [new Part(app, "similarity", question, ({ similarities }, body, target) => {
    const value = similarities.at(-1).toFixed(3);
    target.append(
      element("p", { class: "big", text: app.t("similarity_is", { value }) }),
      ...byLayer(app, similarities, similarities.length - 1));
  })];
}

export function makeSearch(app) {
  for (const id of ["query", "lines"]) field(id).addEventListener("input", app.typed);
  const question = () => {
    const query = field("query").value.trim();
    const lines = field("lines").value.split("\n").map((line) => line.trim()).filter(Boolean);
    return query && lines.length ? ["search", { query, lines, top: 10 }] : "write_search";
  };
  return [new Part(app, "search", question, ({ hits }, body, target) => {
    const rows = hits.map((hit, i) => ({
      label: hit.text, value: hit.similarity, shown: hit.similarity.toFixed(3), chosen: i === 0,
    }));
    target.append(bars(rows, app.t("tab_search")));
  })];
}

export function makeSenses(app) {
  const layer = field("sense-layer");
  for (const id of ["sense-word", "first-sentence", "other-sentence"]) {
    field(id).addEventListener("input", app.typed);
  }
  layer.addEventListener("change", app.changed);
  app.onLanguage(() => {
    const chosen = layer.value || String(app.model.layers);
    layer.replaceChildren(...Array.from({ length: app.model.layers + 1 }, (_, i) => (
      element("option", { value: i, text: i ? i : app.t("layer_0") }))));
    layer.value = chosen;
  });
  const question = () => {
    const word = field("sense-word").value.trim();
    const [first, second] = [field("first-sentence").value, field("other-sentence").value];
    if (!word || !first.trim() || !second.trim()) return "write_senses";
    return ["word", { word, first, second, layer: Number(layer.value) }];
  };
  return [new Part(app, "senses", question, (answer, body, target) => {
    const value = answer.similarities[answer.layer];
    const { t } = app;
    target.append(
      element("p", { class: "big", text: t("distance_is", { word: body.word, layer: answer.layer, distance: (1 - value).toFixed(3), value: value.toFixed(3) }) }),
      element("p", { class: "note", text: t("scatter", { layer: answer.layer, share: percent(answer.share) }) }),
      element("div", { class: "legend" }, ...[0, 1].map((n) => (
        element("span", { class: `s${n}`, text: `${t("sentence_number", { number: n + 1 })}: ${n ? body.second : body.first}` })))),
      element("div", { class: "columns" },
        scatter(app, answer, body.word),
        element("div", { class: "beside" }, ...byLayer(app, answer.similarities, answer.layer))));
  })];
}

/** Where labels may stand: by a point, or farther out with a line to it. [cosine, sine, distance] */
const AROUND = Array.from({ length: 16 }, (_, i) => i * Math.PI / 8);
const PLACES = [0, 8, 16, 26, 38, 52, 68].flatMap((out) => (
  AROUND.map((angle) => [Math.cos(angle), Math.sin(angle), out])));

/** Puts labels near their points: where they cover neither a point nor another label. */
function placeLabels(points) {
  const half = (point) => (point.is_word ? 7 : 4);
  const taken = points.map((point) => ({
    left: point.px - half(point), right: point.px + half(point),
    top: point.py - half(point), bottom: point.py + half(point),
  }));
  const within = (low, value, high) => Math.max(low, Math.min(value, high));
  const overlap = (a, b) => (
    Math.max(0, Math.min(a.right, b.right) - Math.max(a.left, b.left))
    * Math.max(0, Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)));
  // The word's own labels are placed first.
  for (const point of [...points].sort((a, b) => b.is_word - a.is_word)) {
    const height = point.is_word ? 16 : 12;  // as in style.css
    const width = height * [...point.label].reduce((sum, c) => sum + (c < "\u0300" ? 0.8 : 1), 0);
    const boxes = PLACES.map(([cosine, sine, out]) => {
      const gap = half(point) + 3 + out;
      const left = within(2, point.px + cosine * (gap + width / 2) - width / 2, PIXELS - 2 - width);
      const top = within(2, point.py + sine * (gap + height / 2) - height / 2, PIXELS - 2 - height);
      return { left, top, right: left + width, bottom: top + height, out };
    });
    const cost = (box) => box.out + taken.reduce((sum, other) => sum + 100 * overlap(box, other), 0);
    const best = boxes.reduce((a, b) => (cost(b) < cost(a) ? b : a));
    taken.push(best);
    Object.assign(point, {
      lx: best.left, ly: best.top + 0.85 * height,
      leader: best.out && { x: within(best.left, point.px, best.right), y: within(best.top, point.py, best.bottom) },
    });
  }
}

function scatter(app, { points, layer, share }, word) {
  const ends = (values) => [Math.min(...values), Math.max(...values)];
  const [[left, right], [low, high]] = [ends(points.map(({ x }) => x)), ends(points.map(({ y }) => y))];
  const scale = (PIXELS - 2 * MARGIN) / Math.max(right - left, high - low, 1e-9);  // one for both directions
  const shown = points.map((point) => ({
    ...point,
    px: PIXELS / 2 + scale * (point.x - (left + right) / 2),
    py: PIXELS / 2 - scale * (point.y - (low + high) / 2),
  }));
  placeLabels(shown);
  const [a, b] = shown.filter((point) => point.is_word);
  return drawing("svg", { class: "scatter", viewBox: `0 0 ${PIXELS} ${PIXELS}`, role: "img", "aria-label": app.t("scatter", { layer, share: percent(share) }) },
    drawing("line", { class: "between", x1: a.px, y1: a.py, x2: b.px, y2: b.py }),
    ...shown.filter((point) => point.leader).map((point) => (
      drawing("g", { class: `s${point.sentence}` }, drawing("line", {
        class: "leader", x1: point.px, y1: point.py, x2: point.leader.x, y2: point.leader.y })))),
    ...shown.map((point) => {
      const size = point.is_word ? 7 : 4;
      const mark = point.sentence
        ? drawing("rect", { x: point.px - size, y: point.py - size, width: 2 * size, height: 2 * size })
        : drawing("circle", { cx: point.px, cy: point.py, r: size });
      return drawing("g", { class: `s${point.sentence}${point.is_word ? " is-word" : ""}` }, mark,
        drawing("text", { x: point.lx, y: point.ly, text: point.label }));
    }));
}
