// How several vocabularies cut the same text.

import { element, words } from "./dom.js";
import { Part } from "./part.js";

export function makeCuts(app) {
  const question = () => {
    const { text } = app.input();
    return text.trim() ? ["cuts", { text }] : "no_pieces";
  };
  return [new Part(app, "cuts", question, ({ cuts }, body, target) => {
    for (const { name, pieces } of cuts) {
      const count = element("span", { class: "note", text: app.t("cut_count", { count: pieces.length }) });
      target.append(element("div", { class: "cut" },
        element("h3", {}, name, count),
        words(pieces, ({ piece }) => element("span", { class: "piece", text: piece }))));
    }
  })];
}
