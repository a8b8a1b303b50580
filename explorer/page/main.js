// The page: its texts, its tabs, and what all panels share.

import { describe } from "./api.js";
import { makeAttention } from "./attention.js";
import { makeCuts } from "./cuts.js";
import { element, rove } from "./dom.js";
import { makePieces, MaskedText } from "./pieces.js";
import { makePrediction } from "./prediction.js";
import { makeNeighbours, makeSearch, makeSenses, makeSimilarity } from "./vectors.js";

const PAUSE = 350;  // milliseconds after the last key before the program is asked
const LANGUAGES = ["ko", "en"];
// Tabs that have texts of their own.
const OWN_TEXTS = ["neighbours", "similarity", "search", "senses"];
const get = (id) => document.getElementById(id);

const EXAMPLES = {
  pretraining: { text: "나는 어제 학교에 갔다.", masked: "에" },
  classification: { text: "배우들의 연기가 정말 좋았다." },
  ner: { text: "세종대왕은 1397년 서울에서 태어났다." },
  question_answering: {
    text: "훈민정음은 세종대왕이 1443년에 만든 우리나라의 글자이다.",
    second: "훈민정음은 언제 만들어졌나?",
  },
  multiple_choice: {
    text: "비가 많이 와서 민수는 우산을 들고 학교에 갔다.",
    second: "민수는 무엇을 들고 갔나?",
    options: "우산\n책\n공\n빵",
  },
  similarity: { text: "배송이 너무 늦어요.", second: "택배가 아직 안 왔어요." },
};
const WORDS = {
  word: "학교",
  "first-text": "비가 와서 우산을 썼다.",
  "other-text": "날씨가 맑아서 산책을 했다.",
  query: "색깔을 바꿀 수 있을까요?",
  lines: "환불은 언제 되나요?\n배송은 얼마나 걸리나요?\n비밀번호를 잊어버렸어요.\n상품을 다른 색으로 교환할 수 있나요?\n적립금은 어떻게 사용하나요?\n해외로도 배송하나요?\n주문을 취소하고 싶어요.\n영수증은 어디에서 받나요?",
  "sense-word": "배",
  "first-sentence": "항구에서 배를 타고 섬으로 떠났다.",
  "other-sentence": "시장에서 사과와 배를 샀다.",
};

function remember(key, value) {
  try {
    if (value === undefined) return localStorage.getItem(key);
    localStorage.setItem(key, value);
  } catch { /* a browser that keeps nothing */ }
  return null;
}

class App {
  constructor(model, texts) {
    Object.assign(this, { model, texts, parts: {}, tab: null, waiting: new Set(), redrawn: [], focusPiece: null });
    this.t = this.t.bind(this);
    this.typed = this.typed.bind(this);
    this.changed = () => this.refresh();
  }

  /** A text of the page in its language. */
  t(key, values = {}) {
    const shown = (value) => (typeof value === "number" ? value.toLocaleString(this.language) : value);
    return this.texts[this.language][key].replace(/\{(\w+)\}/g, (_, name) => shown(values[name]));
  }

  input() {
    return {
      text: get("text").value,
      second: get("second").value.trim() ? get("second").value : null,
      options: get("options").value.split("\n").map((line) => line.trim()).filter(Boolean),
    };
  }

  /** Whether a prediction cannot be asked for without this field. */
  needs(field) { return this.model.fields.includes(field) && !this.model.optional_fields.includes(field); }

  /** The text, or the pair, as the model reads it. */
  row() {
    const { text, second } = this.input();
    return this.secondFirst && second !== null ? { text: second, second: text } : { text, second };
  }

  /** Whether the second field is the first segment of a row: a question about a text. */
  get secondFirst() { return this.model.row[0] === "second"; }

  /** Whether the second field is a question about the text, which its tasks take first. */
  get asksQuestion() { return this.model.fields[0] === "second"; }

  partName(number) {
    if (!this.secondFirst) return number ? "second_part" : "first_part";
    return number ? "text" : "question";
  }

  onLanguage(redraw) { this.redrawn.push(redraw); }

  typed() {
    clearTimeout(this.timer);
    this.status(this, true);
    this.timer = setTimeout(() => this.refresh(), PAUSE);
  }

  refresh() {
    clearTimeout(this.timer);
    this.status(this, false);
    for (const part of this.parts[this.tab] ?? []) part.refresh();
  }

  /** Notes that a part waits for an answer, or no longer. */
  status(part, waits) {
    if (waits) this.waiting.add(part);
    else this.waiting.delete(part);
    this.showStatus();
  }

  /** Says in the last line whether any part waits. */
  showStatus() {
    const busy = this.waiting.size > 0;
    const line = get("status");
    line.classList.toggle("busy", busy);
    line.textContent = this.t(busy ? "computing" : "ready");
  }

  speak(language) {
    this.language = language;
    document.documentElement.lang = language;
    for (const part of document.querySelectorAll("[data-text]")) part.textContent = this.t(part.dataset.text);
    for (const part of document.querySelectorAll("[data-label]")) part.setAttribute("aria-label", this.t(part.dataset.label));
    const { name, model_type, task, description, layers, heads, hidden_size, vocab_size, longest } = this.model;
    const knownTask = `task_${task}` in this.texts[language];
    document.title = `${name} – ${this.t("title")}`;
    get("model").textContent = this.t("model", {
      name, type: model_type.toUpperCase(), task: knownTask ? this.t(`task_${task}`) : description, layers, heads,
      hidden: hidden_size, vocabulary: vocab_size.toLocaleString(language), longest,
    });
    get("second-label").textContent = this.t(this.asksQuestion ? "question" : "second");
    for (const redraw of this.redrawn) redraw();
    this.redraw();
    this.showStatus();
  }

  redraw() {
    for (const parts of Object.values(this.parts)) parts.forEach((part) => part.render());
  }

  open(tab, focus = false) {
    this.tab = tab;
    for (const name of Object.keys(this.parts)) {
      const button = get(`tab-${name}`);
      button.setAttribute("aria-selected", String(name === tab));
      button.tabIndex = name === tab ? 0 : -1;
      get(`panel-${name}`).hidden = name !== tab;
    }
    get("input").hidden = OWN_TEXTS.includes(tab);
    if (focus) get(`tab-${tab}`).focus();
    this.refresh();
  }
}

function makeTabs(app) {
  const names = Object.keys(app.parts);
  const buttons = names.map((name) => element("button", {
    type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`,
    "data-text": name === "pieces" && app.model.mask ? "tab_pieces_mask" : `tab_${name}`,
    onclick: () => app.open(name),
    onfocus: () => { if (app.tab !== name) app.open(name); },
  }));
  get("tabs").append(...buttons);
  rove(get("tabs"), buttons);
  names.forEach((name) => get(`panel-${name}`).setAttribute("aria-labelledby", `tab-${name}`));
}

function choose(list, value, change) {
  list.value = value;
  list.addEventListener("change", () => change(list.value));
}

async function start() {
  const files = LANGUAGES.map(async (name) => (await fetch(`/page/texts/${name}.json`)).json());
  const [model, ...texts] = await Promise.all([describe(), ...files]);
  const app = new App(model, Object.fromEntries(LANGUAGES.map((name, i) => [name, texts[i]])));
  const task = model.task;
  const example = EXAMPLES[task] ?? EXAMPLES.pretraining;
  get("text").value = example.text;
  get("second").value = example.second ?? "";
  get("options").value = example.options ?? "";
  for (const [id, value] of Object.entries(WORDS)) get(id).value = value;
  if (model.pooling) get("pooling").value = model.pooling;
  const asks = example.second !== undefined;
  get("input").classList.toggle("question-first", app.asksQuestion);
  get("second-field").open = asks;
  get("second-field").hidden = !model.fields.includes("second");
  get("options-field").hidden = !model.fields.includes("options");
  for (const part of document.querySelectorAll(".mask-only")) part.hidden = !model.mask;

  app.masks = new MaskedText(get("text"));
  if (model.mask) {
    const place = example.text.indexOf(example.masked);
    app.masks.mask(place, place + example.masked.length);
  }
  get("text").addEventListener("input", () => { app.masks.typed(); app.typed(); });
  get("text").addEventListener("masked", app.changed);
  for (const id of ["second", "options"]) get(id).addEventListener("input", app.typed);

  app.language = LANGUAGES[0];
  app.parts = {
    ...(task === "pretraining" ? {} : { prediction: makePrediction(app) }),
    pieces: makePieces(app),
    attention: makeAttention(app),
    neighbours: makeNeighbours(app),
    similarity: makeSimilarity(app),
    search: makeSearch(app),
    senses: makeSenses(app),
    cuts: makeCuts(app),
  };
  makeTabs(app);
  const spoken = LANGUAGES.find((name) => navigator.language.startsWith(name)) ?? "en";
  choose(get("language"), remember("language") ?? spoken, (value) => { remember("language", value); app.speak(value); });
  choose(get("theme"), remember("theme") ?? "auto", (value) => {
    remember("theme", value);
    document.documentElement.dataset.theme = value;
    app.redraw();
  });
  document.documentElement.dataset.theme = get("theme").value;
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => app.redraw());
  app.speak(get("language").value);
  app.open(Object.keys(app.parts)[0]);
}

start();
