/** The section of all features: search, sort, and one card each, drawn when it comes near the screen. */

import { h, Lazy, name, put, s } from "./dom.ts";
import { number, percent, sharePercent, whole } from "./format.ts";
import { drawLevels } from "./levels.ts";
import type { Feature } from "./model.ts";
import { drawNumber, isCurve, rangeOf, shapeOf } from "./shape.ts";
import type { State } from "./state.ts";

const SORTS: Record<string, string> = {
  importance: "most important first",
  context: "most changed by context first",
  missing: "most missing first",
  name: "by name",
  table: "as in the table",
};

const NOTHING = 1e-6; // of a standard deviation: what rounding alone does

/** Return a sentence about the share of a feature's effect that its own value explains. */
export function additivityWords(state: State, feature: Feature): string {
  const noise = feature.isNoise ? " It cannot be told from noise." : "";
  return contextWords(state, feature) + noise;
}

function contextWords(state: State, feature: Feature): string {
  if (state.importance(feature) === 0) return "It has no effect on the training rows.";
  if (!state.model.hasContext) return "Its effect depends on its own value alone.";
  const shift = state.shift(feature);
  if (shift <= NOTHING * state.importance(feature)) return "No other feature moved its effect on the training rows.";
  return `Its own value explains ${sharePercent(state.additivity(feature))} of its effect; other features typically move it by ±${number(shift, 2)}.`;
}

export class FeatureSection {
  readonly element: HTMLElement;
  private readonly lazy = new Lazy();
  private readonly grid = h("div", { class: "cards" });
  private readonly count = h("p", { class: "quiet-text", role: "status" });
  private readonly search = h("input", { type: "search", id: "feature-search", placeholder: "Search features" });
  private readonly sort = h("select", { id: "feature-sort" });
  private readonly same = h("input", { type: "checkbox", id: "feature-scale" });

  constructor(private readonly state: State) {
    for (const [key, text] of Object.entries(SORTS)) this.sort.append(h("option", { value: key }, text));
    this.same.checked = true;
    for (const control of [this.search, this.sort, this.same]) control.addEventListener("input", () => this.draw());
    state.on("output", () => this.draw());
    this.element = h(
      "section",
      { id: "features", "aria-labelledby": "features-title" },
      h("h2", { id: "features-title" }, "What each feature does"),
      h(
        "p",
        { class: "lead" },
        "The line is the average effect of a value on the prediction. The wide band is a guarantee: whatever the other features are, the effect stays inside it. ",
        "The inner band contains nine in ten actual effects. Two dashed lines, if there are any, say where the true effect lies, as far as the training rows can tell: on average over a curve, nine times in ten. The bars below count the training rows. If a number has few values, each has its own dot and bar.",
      ),
      h(
        "div",
        { class: "toolbar" },
        h("label", { class: "sr", for: "feature-search" }, "Search features"),
        this.search,
        h("label", { for: "feature-sort" }, "Sorted "),
        this.sort,
        h("label", { class: "check", for: "feature-scale" }, this.same, " same scale for all"),
        this.count,
      ),
      this.grid,
    );
    this.draw();
  }

  /** Draw what is not drawn yet: a printer does not scroll. */
  drawAll(): void {
    this.lazy.buildAll(60);
  }

  private sorted(): Feature[] {
    const state = this.state;
    const features = state.ranked();
    const by = this.sort.value;
    if (by === "name") features.sort((a, b) => a.name.localeCompare(b.name));
    if (by === "table") features.sort((a, b) => a.at - b.at);
    if (by === "missing") features.sort((a, b) => state.missingShare(b) - state.missingShare(a));
    if (by === "context") {
      const shift = (f: Feature) => (1 - state.additivity(f)) * state.importance(f) ** 2;
      features.sort((a, b) => shift(b) - shift(a));
    }
    return features;
  }

  private draw(): void {
    this.lazy.clear();
    const text = this.search.value.trim().toLocaleLowerCase();
    const features = this.sorted().filter((feature) => feature.name.toLocaleLowerCase().includes(text));
    const total = this.state.model.nFeatures;
    this.count.textContent = text
      ? `${whole(features.length)} of ${whole(total)} features`
      : `${whole(total)} features`;
    const range = this.sharedRange();
    const most = this.state.importance(this.state.ranked()[0]) || 1;
    put(this.grid, ...features.map((feature) => this.card(feature, range, most)));
  }

  /** The range of the most important features, the same for all cards. */
  private sharedRange(): [number, number] | null {
    if (!this.same.checked) return null;
    const { model, output } = this.state;
    const ranges = this.state
      .ranked()
      .slice(0, 24)
      .map((feature) => rangeOf(shapeOf(model, feature, output)));
    return [Math.min(...ranges.map(([low]) => low)), Math.max(...ranges.map(([, high]) => high))];
  }

  private card(feature: Feature, shared: [number, number] | null, most: number): HTMLElement {
    const { state } = this;
    const weight = h("i");
    weight.style.width = `${(100 * state.importance(feature)) / most}%`;
    const missing = state.missingShare(feature);
    const figure = h("div", { class: "figure" });
    const reading = h("p", { class: "reading", "aria-live": "polite" }, additivityWords(state, feature));
    const card = h(
      "article",
      { class: "card", "data-feature": feature.at },
      h("h3", {}, name(feature.name)),
      h(
        "div",
        {
          class: "importance",
          role: "img",
          "aria-label": `Importance ${percent(state.importance(feature) / most)} of the largest`,
        },
        weight,
      ),
      figure,
      reading,
      missing > 0 ? h("p", { class: "tag" }, `${sharePercent(missing)} missing`) : null,
    );
    this.lazy.add(card, () => {
      const shape = shapeOf(state.model, feature, state.output);
      const own = rangeOf(shape);
      const range: [number, number] = shared ? [Math.min(shared[0], own[0]), Math.max(shared[1], own[1])] : own;
      put(
        figure,
        isCurve(feature) ? drawNumber(state.model, shape, range, reading) : drawLevels(shape, range, reading),
      );
    });
    put(figure, s("svg", { viewBox: "0 0 400 236", class: "shape", "aria-hidden": "true" }));
    return card;
  }
}
