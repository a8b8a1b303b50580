// Small builders of the elements that several panels show.

const SVG = "http://www.w3.org/2000/svg";

/** An element with properties (class, text, on..., aria-..., data-...) and children. */
export function element(name, properties = {}, ...children) {
  return fill(document.createElement(name), properties, children);
}

/** The same in SVG. */
export function drawing(name, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, name), properties, children);
}

function fill(made, properties, children) {
  for (const [key, value] of Object.entries(properties)) {
    if (key === "text") made.textContent = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

export function percent(share) {
  const value = 100 * share;
  return `${value.toFixed(value < 10 ? 1 : 0)}%`;
}

/** A table of bars: rows of {label, value, shown, chosen, onclick}; values from 0 to 1. */
export function bars(rows, caption) {
  const body = rows.map((row) => {
    const label = row.onclick
      ? element("button", { type: "button", text: row.label, "aria-label": row.title, onclick: row.onclick, lang: "ko" })
      : element("span", { text: row.label, title: row.label });
    const bar = element("div", { class: "bar" });
    bar.style.width = `${100 * Math.min(1, Math.max(0, row.value))}%`;
    return element("tr", { class: row.chosen ? "chosen" : null },
      element("th", { scope: "row" }, label),
      element("td", {}, element("div", { class: "track" }, bar)),
      element("td", { text: row.shown }));
  });
  return element("table", { class: "bars", "aria-label": caption }, element("tbody", {}, ...body));
}

/** Lets the arrow keys move between the items of a group, of which one is in the tab order. */
export function rove(group, items, columns = 1, chosen = 0) {
  items.forEach((item, i) => { item.tabIndex = i === chosen ? 0 : -1; });
  group.addEventListener("keydown", (event) => {
    const at = items.indexOf(document.activeElement);
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
    const place = { Home: 0, End: items.length - 1 }[event.key] ?? at + step;
    if (at < 0 || !(place in items)) return;
    event.preventDefault();
    items[at].tabIndex = -1;
    items[place].tabIndex = 0;
    items[place].focus();
  });
}

/** A colour of the page as [red, green, blue], of whichever theme is shown. */
export function colourOf(part) {
  return getComputedStyle(part).color.match(/[\d.]+/g).slice(0, 3).map(Number);
}

/** A group of pieces, of a word each colour: pieces of {piece, word}; `make` shows one. */
export function words(pieces, make, properties = {}) {
  const group = element("div", { class: "pieces", lang: "ko", ...properties });
  let word = null;
  for (const [i, piece] of pieces.entries()) {
    if (i === 0 || piece.word !== pieces[i - 1].word) {
      word = element("span", { class: `word hue-${((piece.word % 6) + 6) % 6}` });
      group.append(word);
    }
    word.append(make(piece, i));
  }
  return group;
}
