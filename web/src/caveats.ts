/** Caps and caveats: what holds for any input, and what a reader must not conclude. */

import { h, name, put } from "./dom.ts";
import { decimalsFor, fixed, percent, sharePercent, signed, whole } from "./format.ts";
import type { Feature } from "./model.ts";
import type { State } from "./state.ts";

const SHOWN = 15;

export class CaveatSection {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly more = h("button", { type: "button", class: "quiet" });
  private isOpen = false;

  constructor(private readonly state: State) {
    this.more.addEventListener("click", () => {
      this.isOpen = !this.isOpen;
      this.draw();
    });
    state.on("output", () => this.draw());
    const isPairwise = state.model.payload.classes.length > 2;
    const head = isPairwise
      ? ["feature", "moves the log-odds of any two classes by at most"]
      : ["feature", "raises by at most", "lowers by at most"];
    head.push("members agree", "missing in training", "effect of missing");
    this.element = h(
      "section",
      { id: "caveats", "aria-labelledby": "caveats-title" },
      h("h2", { id: "caveats-title" }, "Caps and caveats"),
      h(
        "p",
        { class: "lead" },
        "The caps are proven from the model's tables. They hold for every possible input, including values that are out of range, missing, unseen or adversarial.",
      ),
      h(
        "div",
        { class: "table-box", tabindex: 0, role: "region", "aria-label": "Caps of all features" },
        h("table", {}, h("thead", {}, h("tr", {}, ...head.map((text) => h("th", { scope: "col" }, text)))), this.body),
      ),
      this.more,
      this.advice(),
    );
    this.draw();
  }

  private draw(): void {
    const ranked = this.state.ranked();
    put(this.body, ...(this.isOpen ? ranked : ranked.slice(0, SHOWN)).map((feature) => this.row(feature)));
    this.more.hidden = ranked.length <= SHOWN;
    this.more.textContent = this.isOpen
      ? `Show the ${SHOWN} most important`
      : `Show all ${whole(ranked.length)} features`;
  }

  private row(feature: Feature): HTMLElement {
    const { state } = this;
    const { payload, nOutputs, tables } = state.model;
    const isPairwise = payload.classes.length > 2;
    const cap = payload.caps[isPairwise ? feature.at : feature.at * nOutputs + state.output];
    // Rounded up, so that the sentence stays true.
    const decimals = decimalsFor(cap.adds - cap.takes);
    const up = (value: number) => fixed(Math.ceil(value * 10 ** decimals - 1e-9) / 10 ** decimals, decimals);
    const stability = state.stability(feature);
    const missing = state.missingShare(feature);
    const effect = tables.mean[(feature.start + feature.nValues) * nOutputs + state.output];
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, name(feature.name)),
      h("td", {}, up(cap.adds)),
      isPairwise ? null : h("td", {}, up(-cap.takes)),
      h("td", {}, stability === null ? "one member" : percent(Math.max(stability, 0))),
      h("td", {}, missing > 0 ? sharePercent(missing) : "never"),
      h("td", {}, missing > 0 ? signed(effect, decimals) : "as unseen"),
    );
  }

  private advice(): HTMLElement {
    const { payload } = this.state.model;
    const { nRows, nHeldOut } = payload.training;
    const items: string[][] = [
      [
        "Not causes.",
        "A contribution says what the model concludes from a value, not what would happen in the world if the value changed.",
      ],
      [
        "The model does not extrapolate.",
        "Outside the range of the training rows, the effect of a number keeps the value it has at the end of the range.",
      ],
      [
        "A missing value has an effect of its own,",
        "learned where values were missing in training. Where none was, missing counts as an unseen value does: the average of the known ones.",
      ],
      [
        "Shared credit.",
        "When two features carry the same information, another training run may attribute an effect to the other one. If the members agree little, read the pair, not the single feature.",
      ],
      [
        "How the quality was measured.",
        payload.quality
          ? `The quality was measured on the rows given to this report. If the model had been trained on them, it would look better than it is.${nRows && nHeldOut ? ` In training, ${nHeldOut < nRows ? `${whole(nHeldOut)} of ${whole(nRows)} rows were held out` : "every row was held out by some of the members"} to decide when to stop.` : ""}`
          : "The quality was not measured, because the rows of this report have no actual values.",
      ],
      [
        "What this file contains.",
        `The model, counts and averages of its training rows${payload.rows.number.length ? `, and ${whole(payload.rows.number.length)} rows as they are` : ""}${payload.density ? ", and the approximate density of all rows of this report" : ""}. Share it only with those who may see them.`,
      ],
    ];
    return h("ul", { class: "advice" }, ...items.map(([head, text]) => h("li", {}, h("b", {}, head), " ", text)));
  }
}
