/** The waterfall: from the intercept to the score, one bar per contribution, with its bounds and its two parts. */

import { causesOf } from "./causes.ts";
import { h, name, put, shorten } from "./dom.ts";
import { decimalsFor, fixed, signed, valueText } from "./format.ts";
import { locate } from "./model.ts";
import { linear, type Scale } from "./scales.ts";
import type { State } from "./state.ts";

const SHOWN = 10;

/** One bar: a feature, or several together. */
export interface Bar {
  features: number[];
  start: number;
  value: number;
  own: number;
  lower: number;
  upper: number;
}

/** Return the bars of the row at hand, the largest contribution first; what is beyond `limit` comes together. */
export function barsOf(state: State, limit: number): Bar[] {
  const { model, output, explanation } = state;
  const at = (i: number) => i * model.nOutputs + output;
  const order = model.features
    .map((feature) => feature.at)
    .sort((a, b) => Math.abs(explanation.values[at(b)]) - Math.abs(explanation.values[at(a)]) || a - b);
  const groups = order.slice(0, limit).map((i) => [i]);
  if (order.length > limit) groups.push(order.slice(limit));
  let start = model.tables.intercept[output];
  return groups.map((features) => {
    const sum = (numbers: Float64Array) => features.reduce((total, i) => total + numbers[at(i)], 0);
    const bar: Bar = {
      features,
      start,
      value: sum(explanation.values),
      own: sum(explanation.own),
      lower: sum(explanation.lower),
      upper: sum(explanation.upper),
    };
    start += bar.value;
    return bar;
  });
}

function piece(className: string, scale: Scale, from: number, to: number): HTMLElement {
  const element = h("i", { class: className });
  element.style.left = `${scale(Math.min(from, to))}%`;
  element.style.width = `${Math.abs(scale(to) - scale(from))}%`;
  return element;
}

export class Waterfall {
  readonly element: HTMLElement;
  private readonly list = h("ol", { class: "falls" });
  private readonly more = h("button", { type: "button", class: "quiet" });
  private isOpen = false;
  private readonly asked = new Set<number>();

  constructor(private readonly state: State) {
    this.more.addEventListener("click", () => {
      this.isOpen = !this.isOpen;
      this.draw();
    });
    this.element = h(
      "div",
      { class: "waterfall" },
      h(
        "p",
        { class: "legend", "aria-hidden": "true" },
        h("span", {}, h("i", { class: "key own" }), "by its own value"),
        h("span", {}, h("i", { class: "key context" }), "by context"),
        h("span", {}, h("i", { class: "key bounds" }), "the guaranteed bounds"),
      ),
      this.list,
      this.more,
    );
  }

  draw(): void {
    const bars = barsOf(this.state, this.isOpen ? Number.POSITIVE_INFINITY : SHOWN);
    const intercept = this.state.model.tables.intercept[this.state.output];
    const score = this.state.explanation.score[this.state.output];
    let low = Math.min(intercept, score);
    let high = Math.max(intercept, score);
    for (const bar of bars) {
      const reach =
        bar.features.length > 1 ? [bar.start, bar.start + bar.value] : [bar.start + bar.lower, bar.start + bar.upper];
      low = Math.min(low, bar.start, ...reach);
      high = Math.max(high, bar.start, ...reach);
    }
    const scale = linear([low, high], [1, 99]);
    const decimals = decimalsFor(high - low) + 1;
    put(
      this.list,
      this.fixedRow("average row", "the intercept", intercept, scale, decimals),
      ...bars.map((bar) => this.row(bar, scale, decimals)),
      this.fixedRow("score", this.state.unit, score, scale, decimals),
    );
    const n = this.state.model.nFeatures;
    this.more.hidden = n <= SHOWN + 1;
    this.more.textContent = this.isOpen ? `Show the ${SHOWN} largest` : `Show all ${n} contributions`;
  }

  private fixedRow(label: string, note: string, value: number, scale: Scale, decimals: number): HTMLElement {
    const track = h("div", { class: "track", "aria-hidden": "true" });
    track.append(piece("level", scale, value, value));
    return h(
      "li",
      { class: "fall total" },
      h("span", { class: "fall-label" }, h("b", {}, label), h("small", { title: note }, shorten(note, 40))),
      track,
      h("span", { class: "fall-number" }, fixed(value, decimals)),
    );
  }

  private row(bar: Bar, scale: Scale, decimals: number): HTMLElement {
    const { model, values } = this.state;
    const isGroup = bar.features.length > 1;
    const feature = model.features[bar.features[0]];
    const end = bar.start + bar.value;
    const track = h("div", { class: "track", "aria-hidden": "true" });
    if (!isGroup) track.append(piece("bounds", scale, bar.start + bar.lower, bar.start + bar.upper));
    const sign = (part: number) => (part >= 0 ? "up" : "down");
    track.append(
      piece(`own ${sign(bar.own)}`, scale, bar.start, bar.start + bar.own),
      piece(`context ${sign(bar.value - bar.own)}`, scale, bar.start + bar.own, end),
      piece("level", scale, end, end),
    );
    const text = isGroup
      ? `${bar.features.length} other features together ${signed(bar.value, decimals)}`
      : `${feature.name} adds ${signed(bar.value, decimals)}: ${signed(bar.own, decimals)} by its own value, ` +
        `${signed(bar.value - bar.own, decimals)} by context; bounds ${signed(bar.lower, decimals)} to ${signed(bar.upper, decimals)}.`;
    const label = isGroup
      ? h("span", { class: "fall-label" }, h("b", {}, `${bar.features.length} others`), h("small", {}, "together"))
      : h(
          "button",
          {
            class: "fall-label",
            type: "button",
            "data-key": `fall-${feature.at}`,
            "aria-expanded": this.asked.has(feature.at) ? "true" : "false",
            onclick: () => this.toggle(feature.at),
          },
          h("b", {}, name(feature.name)),
          h("small", {}, h("bdi", {}, shorten(valueText(feature, values[feature.at]), 36))),
        );
    const item = h(
      "li",
      { class: "fall" },
      label,
      track,
      h("span", { class: "fall-number" }, signed(bar.value, decimals)),
      h("span", { class: "sr" }, text),
    );
    if (!isGroup && this.asked.has(feature.at)) item.append(this.detail(bar, decimals));
    return item;
  }

  private toggle(i: number): void {
    if (this.asked.has(i)) this.asked.delete(i);
    else this.asked.add(i);
    this.draw();
  }

  /** Say in words what a bar is made of, and who shifted it. */
  private detail(bar: Bar, decimals: number): HTMLElement {
    const { model, values, explanation, output } = this.state;
    const i = bar.features[0];
    const box = h(
      "div",
      { class: "fall-detail" },
      h(
        "p",
        {},
        `${signed(bar.own, decimals)} on average at this value, ${signed(bar.value - bar.own, decimals)} in this context. `,
        `Whatever the other features are, it stays between ${signed(bar.lower, decimals)} and ${signed(bar.upper, decimals)}.`,
      ),
    );
    if (!model.hasContext) return box;
    const parts = causesOf(model, locate(model, values), explanation, i, output);
    const order = model.features
      .filter((feature) => feature.at !== i)
      .sort((a, b) => Math.abs(parts[b.at]) - Math.abs(parts[a.at]))
      .slice(0, 4)
      .filter((feature) => Math.abs(parts[feature.at]) >= 0.5 * 10 ** -decimals);
    if (!order.length) return box;
    const list = h("ul", { class: "causes" });
    for (const cause of order) {
      list.append(
        h(
          "li",
          {},
          h("b", {}, signed(parts[cause.at], decimals)),
          " because ",
          name(cause.name),
          " is ",
          h("bdi", {}, shorten(valueText(cause, values[cause.at]), 36)),
        ),
      );
    }
    box.append(list);
    return box;
  }
}
