// What a fine-tuned model says: labels, entities, an answer, a choice.

import { bars, element, percent } from "./dom.js";
import { Part } from "./part.js";

export function makePrediction(app) {
  const question = () => {
    const given = app.input();
    if (!given.text.trim()) return "needs_text";
    if (app.needs("options") && (!given.second || given.options.length < 2)) return "needs_options";
    if (app.needs("second") && !given.second) return app.asksQuestion ? "needs_question" : "write_both";
    return ["prediction", Object.fromEntries(app.model.fields.map((name) => [name, given[name]]))];
  };
  return [new Part(app, "prediction", question, (answer, body, target) => {
    target.append(...DRAW[answer.view](app, answer, body));
  })];
}

/** A text with marks: sorted parts of {start, end, label, hue}, counted in characters. */
function marked(text, parts) {
  const characters = Array.from(text);
  const shown = element("p", { class: "shown-text", lang: "ko" });
  let at = 0;
  for (const { start, end, label, hue } of parts) {
    const mark = element("mark", { class: `hue-${hue}` }, characters.slice(start, end).join(""));
    if (label) mark.append(element("small", { text: label }));
    shown.append(characters.slice(at, start).join(""), mark);
    at = end;
  }
  shown.append(characters.slice(at).join(""));
  return shown;
}

function showLabels(app, { score, labels }) {
  if (score !== null) return [element("p", { class: "big", text: app.t("score", { value: score.toFixed(3) }) })];
  const rows = labels.map(({ label, probability, chosen }) => (
    { label, value: probability, shown: percent(probability), chosen }));
  const best = labels.filter(({ chosen }) => chosen).map(({ label }) => label).join(", ");
  return [
    element("p", { class: "big", lang: "ko", text: best || "–" }),
    element("h2", { text: app.t("labels") }), bars(rows, app.t("labels"))];
}

function showEntities(app, { entities }, { text }) {
  const kinds = [...new Set(entities.map((each) => each.kind))].sort();
  const parts = entities.map((each) => ({ ...each, label: each.kind, hue: kinds.indexOf(each.kind) % 6 }));
  const shown = [marked(text, parts)];
  if (!entities.length) return [...shown, element("p", { class: "note", text: app.t("no_entities") })];
  const heads = ["entities", "entity_kind", "characters", "probability"];
  const rows = entities.map((each) => element("tr", {},
    ...[each.text, each.kind, `${each.start}–${each.end}`, percent(each.probability)].map((cell) => element("td", { text: cell }))));
  return [...shown, element("table", { class: "plain" },
    element("thead", {}, element("tr", {}, ...heads.map((key) => element("th", { scope: "col", text: app.t(key) })))),
    element("tbody", {}, ...rows))];
}

function showAnswer(app, { answer, candidates }, { text }) {
  const parts = answer.start === null ? [] : [{ ...answer, hue: 1 }];
  const rows = candidates.map((each) => ({
    label: each.text || app.t("nothing"), value: each.probability, shown: percent(each.probability), chosen: each.text === answer.text,
  }));
  return [
    element("p", { class: "big", lang: "ko", text: answer.text || app.t("no_answer") }),
    marked(text, parts),
    element("h2", { text: app.t("candidates") }), bars(rows, app.t("candidates"))];
}

function showChoice(app, { chosen, probabilities }, { options }) {
  const rows = probabilities.map((share, i) => (
    { label: options[i], value: share, shown: percent(share), chosen: i === chosen }));
  return [
    element("p", { class: "big", lang: "ko", text: options[chosen] }),
    element("h2", { text: app.t("answer") }), bars(rows, app.t("answer"))];
}

const DRAW = { labels: showLabels, entities: showEntities, answer: showAnswer, choice: showChoice };
