// A part of a panel: the question that it asks, and how it draws the answer.

import { ask, Refusal } from "./api.js";
import { element } from "./dom.js";

export class Part {
  /**
   * @param app what all parts share: status(part, whether it waits), t(key, values).
   * @param target the id of the element that it draws into.
   * @param question () => [name, body], or a key of the texts that says what is missing.
   * @param draw (answer, body, target) => nothing.
   */
  constructor(app, target, question, draw) {
    Object.assign(this, { app, question, draw, target: document.getElementById(target) });
    this.asked = null;
  }

  /** Asks, if the question is another than before; then draws. */
  async refresh() {
    const question = this.question();
    const key = JSON.stringify(question);
    if (key === this.asked) return;
    this.asked = key;
    this.controller?.abort();
    this.app.status(this, false);
    if (typeof question === "string") {
      this.found = { missing: question };
      this.controller = null;
      this.render();
      return;
    }
    const [name, body] = question;
    const controller = new AbortController();
    this.controller = controller;
    this.target.setAttribute("aria-busy", "true");
    this.app.status(this, true);
    try {
      const answer = await ask(name, body, controller.signal);
      this.found = { answer, body };
    } catch (error) {
      if (controller.signal.aborted) return;  // a newer question is on its way
      this.asked = null;  // so that it can be asked again
      this.found = { refusal: error instanceof Refusal ? error : null };
    }
    if (this.controller !== controller) return;
    this.controller = null;
    this.app.status(this, false);
    this.render();
  }

  /** What is wrong, and a button where it may be better later; null: no answer at all. */
  problem(refusal) {
    const { t } = this.app;
    const { code, values } = refusal ?? { code: "gone", values: {} };
    const shown = element("p", { class: "error", role: "alert", text: t(`error_${code}`, values) });
    if (!refusal || refusal.later) {
      shown.append(" ", element("button", { type: "button", text: t("again"), onclick: () => this.refresh() }));
    }
    return shown;
  }

  /** Draws what was found last: anew in another language or theme. */
  render() {
    if (!this.found) return;
    const { t } = this.app;
    if (!this.controller) this.target.removeAttribute("aria-busy");
    this.target.replaceChildren();
    if (this.found.missing) {
      this.target.append(element("p", { class: "note", text: t(this.found.missing) }));
    } else if (this.found.answer) {
      this.draw(this.found.answer, this.found.body, this.target);
    } else {
      this.target.append(this.problem(this.found.refusal));
    }
  }
}
