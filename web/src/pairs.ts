/** Pairs: which features change each other's effects, and the map of any two or three. */

import { Density } from "./density.ts";
import { type Child, h, Lazy, name, put, shorten } from "./dom.ts";
import { decimalsFor, fixed, number, percent, sharePercent, signed, valueText, whole } from "./format.ts";
import { type Interaction, interact, pureOf, totalOf } from "./interaction.ts";
import { drawMap, unevenWords } from "./map.ts";
import { FEW_VALUES, type Feature, rowValues } from "./model.ts";
import { diverging, faded } from "./scales.ts";
import type { State } from "./state.ts";

const TOP = 10;
const LEAST = 0.02; // of the spread of all scores: what matters; see docs/report.md
const VIEWS = ["both together", "beyond each alone"];

const [FINE, DEEP] = [44, 20]; // values of a number on a map; a deep gate is slow to evaluate
const FADED = 0.2; // share of a colour below which it is said that few rows are near

interface Pair {
  first: number;
  second: number;
  strength: number;
}

/** Return the pairs that change each other the most. */
export function topPairs(state: State, count: number): Pair[] {
  const n = state.model.nFeatures;
  const pairs: Pair[] = [];
  for (let first = 0; first < n; first++) {
    for (let second = first + 1; second < n; second++) {
      const strength = Math.hypot(state.influence(first, second), state.influence(second, first));
      if (strength > 0) pairs.push({ first, second, strength });
    }
  }
  return pairs.sort((a, b) => b.strength - a.strength).slice(0, count);
}

export class PairSection {
  readonly element: HTMLElement;
  private readonly lazy = new Lazy();
  private readonly list = h("ol", { class: "pairs" });
  private readonly note = h("p", { class: "pair-note" });
  private readonly density: Density;
  private readonly choices = [0, 1, 2].map((at) => h("select", { id: `pair-${at}` }));
  private readonly view = h("select", { id: "pair-view" });
  private readonly figure = h("div", { class: "maps" });
  private readonly reading = h("p", { class: "reading", "aria-live": "polite" });
  private uneven = "";
  private readonly who = h("p", { class: "who" });

  constructor(private readonly state: State) {
    this.density = new Density(state.model);
    this.element = this.layOut();
    if (state.model.nFeatures < 2) return;
    const features = state.model.features;
    this.choices[2].append(h("option", { value: "" }, "none"));
    for (const select of this.choices) {
      for (const feature of features) select.append(h("option", { value: feature.at }, shorten(feature.name, 60)));
      select.addEventListener("change", () => state.setPair(this.chosen(select)));
    }
    this.view.addEventListener("change", () => this.draw());
    state.on("pair", () => this.choose());
    state.on("theme", () => this.draw());
    state.on("output", () => {
      this.drawList();
      this.draw();
    });
    const best = topPairs(state, 1)[0];
    const ranked = state.ranked();
    state.pair = best ? [best.first, best.second] : [ranked[0].at, ranked[1].at];
    this.lazy.add(this.element, () => this.choose());
  }

  /** Draw at once: a printer does not scroll. */
  drawAll(): void {
    this.lazy.buildAll(1);
  }

  private layOut(): HTMLElement {
    const [first, second, third] = this.choices;
    const field = (label: string, control: HTMLElement) =>
      h("label", { class: "field", for: control.id }, h("span", {}, label), control);
    const title = h("h2", { id: "pairs-title" }, "Which features change each other's effect");
    if (this.state.model.nFeatures < 2) {
      return h(
        "section",
        { id: "pairs" },
        title,
        h("p", { class: "lead" }, "This model has one feature, so there are no pairs."),
      );
    }
    return h(
      "section",
      { id: "pairs", "aria-labelledby": "pairs-title" },
      title,
      h(
        "p",
        { class: "lead" },
        "A feature's effect can depend on others. Pick a pair, or any two or three features, to see their map.",
      ),
      h(
        "div",
        { class: "pair-bench" },
        h("div", {}, this.note, this.list),
        h(
          "div",
          { class: "pair-figure" },
          h(
            "div",
            { class: "fields" },
            field("across", first),
            field("up", second),
            field("and at values of", third),
            field("show", this.view),
          ),
          this.figure,
          this.reading,
          this.who,
        ),
      ),
    );
  }

  /** Return the chosen features, each once; the one picked last stays. */
  private chosen(last: HTMLSelectElement): number[] {
    const found = this.choices.map((select) => (select.value === "" ? -1 : Number(select.value)));
    const at = this.choices.indexOf(last);
    found.forEach((value, other) => {
      if (other === at || value !== found[at] || value < 0) return;
      if (other === 2) found[2] = -1;
      else found[other] = this.state.ranked().find((feature) => !found.includes(feature.at))?.at ?? found[other];
    });
    if (found[0] === found[1]) found[2] = -1;
    return found.filter((value) => value >= 0);
  }

  private choose(): void {
    const { pair, model } = this.state;
    this.choices.forEach((select, at) => {
      select.value = at < pair.length ? String(pair[at]) : "";
    });
    const before = this.view.selectedIndex;
    const own = pair.map((i) => `effect of ${shorten(model.features[i].name, 40)}`);
    put(this.view, ...[...VIEWS, ...own].map((text, at) => h("option", { value: at }, text)));
    this.view.selectedIndex = before >= 0 && before < VIEWS.length ? before : 0;
    this.drawList();
    this.draw();
  }

  /** Show the pairs that matter, each as a share of the spread of all scores. */
  private drawList(): void {
    const { state } = this;
    const spread = this.spread();
    const strongest = topPairs(state, TOP);
    const pairs = strongest.filter((pair) => pair.strength >= LEAST * spread);
    const decimals = decimalsFor(4 * (pairs[0]?.strength ?? 1));
    put(this.note, ...this.summary(strongest[0], pairs.length));
    put(
      this.list,
      ...pairs.map((pair) => {
        const isChosen = state.pair.slice(0, 2).includes(pair.first) && state.pair.slice(0, 2).includes(pair.second);
        const bar = h("i", { "aria-hidden": "true" });
        bar.style.width = `${Math.min((100 * pair.strength) / spread, 100)}%`;
        const features = state.model.features;
        return h(
          "li",
          {},
          h(
            "button",
            {
              type: "button",
              "data-key": `pair-${pair.first}-${pair.second}`,
              "aria-pressed": isChosen ? "true" : "false",
              onclick: () => state.setPair([pair.first, pair.second]),
            },
            h(
              "span",
              { class: "pair-names" },
              name(features[pair.first].name),
              " × ",
              name(features[pair.second].name),
            ),
            h(
              "span",
              { class: "pair-size" },
              h("b", {}, `±${fixed(pair.strength, decimals)}`),
              ` · ${sharePercent(pair.strength / spread)}`,
            ),
            h("span", { class: "pair-bar" }, bar),
          ),
        );
      }),
    );
  }

  /** The standard deviation of all scores; 0 when they are all the same. */
  private spread(): number {
    return Math.sqrt(this.state.model.tables.scoreVariance[this.state.output]);
  }

  /** Return what the list shows, or that there is nothing to show. */
  private summary(best: Pair | undefined, nShown: number): Child[] {
    const spread = this.spread();
    if (!best || spread === 0) return ["No feature changes another's effect in this model."];
    const features = this.state.model.features;
    const scale = `the spread of all scores (±${number(spread, 3)}, their standard deviation)`;
    if (nShown) {
      return [
        `The bars show how much two features typically change each other's effects. A full bar is ${scale}; pairs below ${percent(LEAST)} of it are left out.`,
      ];
    }
    return [
      h("b", {}, "No pair matters here. "),
      "The strongest is ",
      name(features[best.first].name),
      " × ",
      name(features[best.second].name),
      `: they change each other's effects by ±${number(best.strength, 2)}, ${sharePercent(best.strength / spread)} of ${scale}. Below ${percent(LEAST)} a pair is not listed.`,
    ];
  }

  private draw(): void {
    const { state } = this;
    const { model, pair, output } = state;
    if (pair.length < 2) return;
    const isWide = pair.length === 3;
    const many = !model.isExact ? DEEP : isWide ? 26 : FINE;
    const resolution = (one: Feature) =>
      one.isListed ? FEW_VALUES : one.kind === "number" ? many : Math.min(many, FEW_VALUES);
    const found = interact(model, pair, resolution, output);
    const view = this.view.selectedIndex;
    const values = view === 1 ? pureOf(found) : view > 1 ? found.parts[view - 2] : totalOf(found);
    const near = this.density.over(found.lines);
    const most = values.reduce((top, value, at) => (near[at] > 0 ? Math.max(top, Math.abs(value)) : top), 0) || 1;
    this.figure.classList.toggle("many", isWide);
    put(this.figure, ...this.panels(found, values, near, most), this.legend(most));
    this.uneven = unevenWords(found.lines.slice(0, 2));
    this.say(null);
    this.drawWho(found);
  }

  private panels(found: Interaction, values: Float64Array, near: Float64Array, most: number): HTMLElement[] {
    const { model, isDark, pair } = this.state;
    const nThird = found.lines[2]?.position.length ?? 1;
    const nPoints = values.length / nThird;
    const decimals = decimalsFor(2 * most);
    // Drawn at the size it is seen at, so that its text stays readable.
    const wide = Math.min(Math.max(innerWidth - 32, 320), 640);
    const rows = model.payload.rows.number.map((_, row) => rowValues(model, row));
    return Array.from({ length: nThird }, (_, third) => {
      const own = Float64Array.from({ length: nPoints }, (_, at) => values[at * nThird + third]);
      const beside = Float64Array.from({ length: nPoints }, (_, at) => near[at * nThird + third]);
      const [x, y] = found.lines;
      const held = found.lines[2];
      const text = held
        ? `${shorten(held.feature.name, 30)} = ${shorten(valueText(held.feature, held.values[third]), 30)}`
        : "";
      const svg = drawMap(found.lines, own, {
        width: held ? 330 : wide,
        height: held ? 290 : Math.round(110 + wide / 2),
        isDark,
        most,
        near: beside,
        rows: held ? [] : rows.map((row) => [row[pair[0]], row[pair[1]]]),
        label: `Map of ${x.feature.name} and ${y.feature.name}${text ? `, ${text}` : ""}`,
        read: (a, b) => {
          const at = a * y.position.length + b;
          const place = [
            `${shorten(x.feature.name, 40)} ${valueText(x.feature, x.values[a])}`,
            `${shorten(y.feature.name, 40)} ${valueText(y.feature, y.values[b])}`,
            ...(text ? [text] : []),
          ];
          const rows = beside[at] === 0 ? "; no row is near" : beside[at] < FADED ? "; few rows are near" : "";
          this.say(`${place.join(", ")}: ${signed(own[at], decimals)}${rows}`);
        },
        leave: () => this.say(null),
      });
      return h("figure", { class: "panel" }, text ? h("figcaption", {}, text) : null, svg);
    });
  }

  private legend(most: number): HTMLElement {
    const bar = h("span", { class: "ramp", "aria-hidden": "true" });
    for (let n = 0; n <= 20; n++) {
      const cell = h("i");
      cell.style.background = diverging(n / 10 - 1, this.state.isDark);
      bar.append(cell);
    }
    const decimals = decimalsFor(8 * most);
    const empty = h("i", { class: "key", "aria-hidden": "true" });
    empty.style.background = faded("rgb(0 0 0)", 0, this.state.isDark);
    return h(
      "p",
      { class: "map-legend" },
      signed(-most, decimals),
      bar,
      signed(most, decimals),
      h("span", { class: "quiet-text" }, " added to ", name(this.state.unit)),
      this.density.knows(this.state.pair) && h("span", { class: "quiet-text" }, empty, "no rows"),
    );
  }

  private say(text: string | null): void {
    this.reading.textContent = text ?? `${this.exactness()}${this.whereRows()}${this.uneven}`;
  }

  private exactness(): string {
    return this.state.model.isExact
      ? "Exact, with all other features held at their average context."
      : "An average over contexts: this model's gate is deep, so a map of a few features is not exact.";
  }

  /** Return what dots and grey mean. */
  private whereRows(): string {
    const { model, pair } = this.state;
    const { number, nTotal } = model.payload.rows;
    const dots =
      pair.length === 2 && number.length > 0 ? ` Dots are the ${whole(number.length)} rows in this page.` : "";
    if (!this.density.knows(pair)) return `${dots} This page does not contain the density of rows on this map.`;
    return `${dots} Colours fade to grey where there are few or none of the ${whole(nTotal)} rows of this report.`;
  }

  private drawWho(found: Interaction): void {
    const { state } = this;
    const [a, b] = found.lines.map((line) => line.feature);
    const spread = this.spread() || 1;
    const [onA, onB] = [state.influence(a.at, b.at), state.influence(b.at, a.at)];
    const decimals = decimalsFor(8 * Math.max(onA, onB));
    const side = (cause: typeof a, effect: typeof a, size: number) => [
      name(cause.name),
      " changes the effect of ",
      name(effect.name),
      " by ",
      h("b", {}, `±${fixed(size, decimals)}`),
    ];
    put(
      this.who,
      "Typically ",
      ...side(b, a, onA),
      ", and ",
      ...side(a, b, onB),
      `. Together this is ${sharePercent(Math.hypot(onA, onB) / spread)} of the spread of all scores (±${number(spread, 3)}).`,
    );
  }
}
