/** What if: every feature under the reader's hand, the prediction and its parts beside it. */

import { type Control, makeControl } from "./controls.ts";
import { h, name, put } from "./dom.ts";
import { decimalsFor, number, percent, signed, whole } from "./format.ts";
import type { State } from "./state.ts";
import { Waterfall } from "./waterfall.ts";

const SHOWN = 12;

export class WhatIfSection {
  readonly element: HTMLElement;
  private readonly controls = new Map<number, Control>();
  private readonly list = h("div", { class: "controls" });
  private readonly search = h("input", { type: "search", id: "what-search", placeholder: "Search features" });
  private readonly more = h("button", { type: "button", class: "quiet" });
  private readonly start = h("select", { id: "what-start" });
  private readonly score = h("div", { class: "score", "aria-live": "polite" });
  private readonly waterfall: Waterfall;
  private isOpen = false;

  constructor(private readonly state: State) {
    this.waterfall = new Waterfall(state);
    for (const feature of state.model.features) this.controls.set(feature.at, makeControl(state, feature));
    this.fillStart();
    this.more.addEventListener("click", () => {
      this.isOpen = !this.isOpen;
      this.arrange();
    });
    this.search.addEventListener("input", () => this.arrange());
    this.element = this.layOut();
    state.on("values", () => this.sync());
    state.on("output", () => {
      this.arrange();
      this.sync();
    });
    this.arrange();
    this.sync();
  }

  private layOut(): HTMLElement {
    const isLong = this.state.model.nFeatures > SHOWN;
    const nRows = this.state.model.payload.rows.number.length;
    const random = (): void => this.state.load(Math.floor(Math.random() * nRows));
    return h(
      "section",
      { id: "what-if", "aria-labelledby": "what-title" },
      h("h2", { id: "what-title" }, "What if?"),
      h(
        "p",
        { class: "lead" },
        "Change any value. The prediction and every part of it are computed here, in the page, from the model itself.",
      ),
      h(
        "div",
        { class: "toolbar" },
        h("label", { for: "what-start" }, "Start from "),
        this.start,
        nRows > 0 && h("button", { type: "button", onclick: random }, "A random row"),
        h("button", { type: "button", onclick: () => this.state.load(this.state.startRow) }, "Undo changes"),
      ),
      h(
        "div",
        { class: "bench" },
        h(
          "div",
          { class: "bench-controls" },
          isLong && h("label", { class: "sr", for: "what-search" }, "Search features to change"),
          isLong && this.search,
          this.list,
          this.more,
        ),
        h("div", { class: "bench-result" }, this.score, this.waterfall.element),
      ),
    );
  }

  private fillStart(): void {
    this.start.append(h("option", { value: "" }, "the typical row (medians)"));
    this.state.model.payload.rows.number.forEach((number, row) => {
      this.start.append(h("option", { value: row }, `row ${number}`));
    });
    this.start.addEventListener("change", () =>
      this.state.load(this.start.value === "" ? null : Number(this.start.value)),
    );
  }

  private arrange(): void {
    const text = this.search.value.trim().toLocaleLowerCase();
    const ranked = this.state.ranked().filter((feature) => feature.name.toLocaleLowerCase().includes(text));
    const shown = this.isOpen || text ? ranked : ranked.slice(0, SHOWN);
    put(this.list, ...shown.map((feature) => this.controls.get(feature.at)?.element));
    this.more.hidden = Boolean(text) || ranked.length <= SHOWN;
    this.more.textContent = this.isOpen
      ? `Show the ${SHOWN} most important`
      : `Show all ${whole(ranked.length)} features`;
  }

  private sync(): void {
    const { explanation, model, output } = this.state;
    let most = 0;
    for (let i = 0; i < model.nFeatures; i++) {
      most = Math.max(most, Math.abs(explanation.values[i * model.nOutputs + output]));
    }
    const decimals = decimalsFor(4 * most) + 1;
    for (const control of this.controls.values()) control.sync(decimals);
    this.start.value = this.state.startRow === null ? "" : String(this.state.startRow);
    this.waterfall.draw();
    this.drawScore();
  }

  private drawScore(): void {
    const { explanation, model, output } = this.state;
    const { payload } = model;
    const score = explanation.score[output];
    const prediction = explanation.prediction[output];
    this.score.dataset.score = String(score);
    this.score.dataset.prediction = String(prediction);
    if (payload.link === "softmax") {
      put(this.score, h("p", { class: "kicker" }, "Predicted ", name(payload.target)), this.classList(), this.truth());
      return;
    }
    const isChance = payload.link === "logit";
    const label = isChance
      ? payload.outputs[0]
      : payload.outputs[output] === "score"
        ? payload.target
        : payload.outputs[output];
    put(
      this.score,
      h("p", { class: "kicker" }, isChance ? "Chance of " : "Predicted ", name(label)),
      h("p", { class: "big" }, isChance ? percent(prediction, 1) : number(prediction, 5)),
      isChance && h("p", { class: "quiet-text" }, `log-odds ${signed(score, 3)}`),
      payload.link === "log" && h("p", { class: "quiet-text" }, `the exponential of ${signed(score, 3)}`),
      this.truth(),
    );
  }

  private classList(): HTMLElement {
    const { explanation, model, output } = this.state;
    const list = h("ul", { class: "classes" });
    const order = Array.from(explanation.prediction, (_, o) => o).sort(
      (a, b) => explanation.prediction[b] - explanation.prediction[a],
    );
    for (const o of order.slice(0, 8)) {
      const fill = h("i");
      fill.style.width = `${100 * explanation.prediction[o]}%`;
      list.append(
        h(
          "li",
          {},
          h(
            "button",
            {
              type: "button",
              "data-key": `class-${o}`,
              "aria-pressed": o === output ? "true" : "false",
              onclick: () => this.state.setOutput(o),
            },
            name(model.payload.outputs[o]),
            h("span", { class: "class-bar", "aria-hidden": "true" }, fill),
            h("b", {}, percent(explanation.prediction[o], 1)),
          ),
        ),
      );
    }
    return list;
  }

  /** The truth of a carried row, as long as nothing was changed. */
  private truth(): HTMLElement | null {
    const { state } = this;
    const { rows, classes } = state.model.payload;
    if (state.startRow === null || !rows.target.length) return null;
    const changed = state.values.filter((value, i) => value !== state.start[i]).length;
    const row = rows.number[state.startRow];
    if (changed)
      return h("p", { class: "quiet-text" }, `row ${row} with ${changed} changed value${changed > 1 ? "s" : ""}`);
    const value = rows.target[classes.length ? 0 : state.output][state.startRow];
    if (value === null) return null;
    return h(
      "p",
      { class: "quiet-text" },
      "actual: ",
      h("b", {}, classes.length ? name(classes[value]) : number(value, 5)),
    );
  }
}
