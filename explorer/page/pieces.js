// Pieces, masks by a click, guesses.

import { bars, element, percent, rove, words } from "./dom.js";
import { Part } from "./part.js";

const MASK = "[MASK]";

/** The text in which pieces are masked, with what stood at each mask: null where it was typed. */
export class MaskedText {
  constructor(field) {
    this.field = field;
    this.last = field.value;
    this.originals = this.places().map(() => null);
  }

  /** Where the masks begin. */
  places(text = this.field.value) {
    return [...text.matchAll(/\[MASK\]/g)].map((match) => match.index);
  }

  /** After typing: masks before and after what was changed keep what stood there. */
  typed() {
    const [old, text] = [this.last, this.field.value];
    let start = 0;
    while (start < old.length && start < text.length && old[start] === text[start]) start += 1;
    let end = 0;
    const most = Math.min(old.length, text.length) - start;
    while (end < most && old.at(-1 - end) === text.at(-1 - end)) end += 1;
    const before = this.places(old).filter((place) => place + MASK.length <= start).length;
    const after = this.places(old).filter((place) => place >= old.length - end).length;
    const count = this.places().length;
    const kept = this.originals;
    this.originals = Array.from({ length: count }, (_, i) => {
      if (i < before) return kept[i];
      return count - i <= after ? kept[kept.length - (count - i)] : null;
    });
    this.last = text;
  }

  replace(start, end, part) {
    const text = this.field.value;
    this.field.value = this.last = text.slice(0, start) + part + text.slice(end);
    this.field.dispatchEvent(new Event("masked", { bubbles: true }));
  }

  /** Masks what stands from start to end, which are places in the string. */
  mask(start, end) {
    const number = this.places().filter((place) => place < start).length;
    const inside = this.places().filter((place) => place >= start && place < end).length;
    const text = this.unmasked(start, end);
    this.originals.splice(number, inside, text);
    this.replace(start, end, MASK);
  }

  /** The text from start to end as it was before it was masked; masks that were typed stay. */
  unmasked(start, end) {
    const text = this.field.value;
    const places = this.places();
    let [found, at] = ["", start];
    places.forEach((place, i) => {
      if (place < start || place >= end) return;
      found += text.slice(at, place) + (this.originals[i] ?? MASK);
      at = place + MASK.length;
    });
    return found + text.slice(at, end);
  }

  /** Puts a text in the place of a mask; null: what stood there. Whether the text has changed. */
  fill(number, text) {
    const part = text ?? this.originals[number];
    const start = this.places()[number];
    if (part === null) {  // it was typed: there the user can go on
      this.field.focus();
      this.field.setSelectionRange(start, start + MASK.length);
      return false;
    }
    this.originals.splice(number, 1);
    this.replace(start, start + MASK.length, part);
    return true;
  }
}

/** The place in a JavaScript string of a character that Python counted. */
function unitsBefore(text, characters) {
  return Array.from(text).slice(0, characters).join("").length;
}

export function makePieces(app) {
  const unit = () => document.querySelector("[name=unit]:checked").value;
  const longest = document.getElementById("max-pieces");
  longest.addEventListener("change", app.changed);

  function press(piece, number, all, text) {
    let [start, end] = [piece.start, piece.end];
    app.focusPiece = number;  // where the focus is when the pieces are drawn anew
    if (text.slice(unitsBefore(text, start), unitsBefore(text, end)) === MASK) {
      const before = all.filter((each) => each.start < start && each.piece === MASK);
      const mask = new Set(before.map((each) => each.start)).size;
      if (!app.masks.fill(mask, null)) app.focusPiece = null;
      return;
    }
    if (unit() === "word") {
      const same = all.filter((each) => each.word === piece.word);
      [start, end] = [Math.min(...same.map((p) => p.start)), Math.max(...same.map((p) => p.end))];
    }
    [start, end] = [unitsBefore(text, start), unitsBefore(text, end)];
    while (start < end && /\s/.test(text[start])) start += 1;
    if (start < end) app.masks.mask(start, end);
    else app.focusPiece = null;
  }

  function drawPieces(answer, body, target) {
    const { t, model } = app;
    const { count } = answer;
    if (!answer.texts.some((pieces) => pieces.length)) {
      target.append(element("p", { class: "note", text: t("no_pieces") }));
      return;
    }
    target.append(element("p", { class: "note", text: `${t("piece_count", { count, longest: model.longest })} ${t(model.mask ? "piece_hint" : "piece_hint_plain")}` }));
    answer.texts.forEach((pieces, number) => {
      const clickable = model.mask && number === 0;  // the text that guesses are for
      const text = number === 0 ? body.text : body.second;
      const buttons = [];
      const group = words(pieces, (piece, i) => {
        const { start, end } = piece;
        const masked = clickable && piece.piece === MASK;
        const made = element(clickable ? "button" : "span", {
          class: `piece${masked ? " masked" : ""}`,
          "aria-label": t("piece_label", { ...piece, id: String(piece.id) }),
          ...(clickable ? { type: "button", "aria-pressed": String(masked), onclick: () => press(piece, i, pieces, text) } : { role: "img" }),
        },
        element("span", { text: piece.piece }),
        element("small", { text: piece.id }),
        element("small", { text: `${start}–${end}` }));
        buttons.push(made);
        return made;
      }, { role: "group", "aria-label": t(number ? "second_part" : "first_part") });
      if (answer.texts.length > 1) target.append(element("h3", { text: t(app.partName(number)) }));
      target.append(group);
      if (clickable) {
        const chosen = Math.min(app.focusPiece ?? 0, buttons.length - 1);
        rove(group, buttons, 1, chosen);
        if (app.focusPiece !== null) buttons[chosen]?.focus();
        app.focusPiece = null;
      }
    });
  }

  function drawGuesses(answer, body, target) {
    const { t } = app;
    const shown = answer.masks.map((guesses, number) => {
      const was = app.masks.originals[number];
      const title = t("mask_number", { number: number + 1 }) + (was ? ` (${t("mask_was", { text: was })})` : "");
      const rows = guesses.map((guess) => ({
        label: guess.text,
        title: t("fill_in", { text: guess.text, share: percent(guess.probability) }),
        value: guess.probability,
        shown: percent(guess.probability),
        chosen: guess.text === was,
        onclick: () => app.masks.fill(number, guess.text),
      }));
      return element("div", {}, element("h3", { text: title }), bars(rows, title));
    });
    target.append(element("div", { class: "masks" }, ...shown));
  }

  const parts = [new Part(app, "pieces", () => ["pieces", app.row()], drawPieces)];
  if (app.model.mask) {
    const question = () => {
      const { text } = app.input();
      if (!text.includes(MASK)) return "no_masks";
      return ["guesses", { text, top: 8, max_pieces: Number(longest.value) }];
    };
    parts.push(new Part(app, "guesses", question, drawGuesses));
  }
  return parts;
}
