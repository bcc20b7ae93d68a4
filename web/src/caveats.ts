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
      : ["feature", "adds at most", "takes at most"];
    head.push("members agree", "missing in training", "effect of missing");
    this.element = h(
      "section",
      { id: "caveats", "aria-labelledby": "caveats-title" },
      h("h2", { id: "caveats-title" }, "Caps and caveats"),
      h(
        "p",
        { class: "lead" },
        "The caps are proven from the model's tables. They hold for every input there can be: out of range, missing, never seen, or made to deceive.",
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
        "A contribution says what the model makes of a value, not what would happen in the world if it changed.",
      ],
      [
        "Beyond the range, nothing new.",
        "Outside the values seen in training the effect of a number stays what it is at the end. The model does not extrapolate.",
      ],
      [
        "Missing has an effect of its own,",
        "learned where values were missing in training. Where none was, missing counts as an unseen value does: the average of the known ones.",
      ],
      [
        "Shared credit.",
        "When two features carry the same news, another training may credit the other one. Where the members agree little, read the pair, not the single feature.",
      ],
      [
        "How the quality was measured.",
        payload.quality
          ? `On the rows given to this report. If the model had been trained on them, the figure would flatter it.${nRows && nHeldOut ? ` In training, ${nHeldOut < nRows ? `${whole(nHeldOut)} of ${whole(nRows)} rows were held out` : "every row was held out by some of the members"} to decide when to stop.` : ""}`
          : "It was not: the rows of this report came without the truth.",
      ],
      [
        "What this file contains.",
        `The model, counts and averages of its training rows${payload.rows.number.length ? `, and ${whole(payload.rows.number.length)} rows as they are` : ""}${payload.density ? ", and roughly where all rows of this report lie" : ""}. Share it only with those who may see them.`,
      ],
    ];
    return h("ul", { class: "advice" }, ...items.map(([head, text]) => h("li", {}, h("b", {}, head), " ", text)));
  }
}
