/** What the model can never do: seals, promises that are not kept, and a forest plot of caps. */

import { h, name, put } from "./dom.ts";
import { drawForest } from "./forest.ts";
import { number, valueText } from "./format.ts";
import type { PromisePayload } from "./payload.ts";
import { emblem, type SealKind } from "./seals.ts";
import type { State } from "./state.ts";

const FEW = 12; // features that a seal names before it counts the others

interface Seal {
  kind: SealKind;
  features: number[];
  /** Features that were not promised. */
  extra: Set<number>;
  /** A word after the name of each feature. */
  notes: Map<number, string>;
  foot: string;
}

export class NeverSection {
  readonly element: HTMLElement;
  private readonly seals = h("div", { class: "seals" });
  private readonly forest = h("div", { class: "never-forest" });

  constructor(private readonly state: State) {
    const { never } = state.model.payload;
    const broken = never.promises.filter((one) => one.verdict !== "proven");
    this.element = h(
      "section",
      { id: "never", "aria-labelledby": "never-title" },
      h("h2", { id: "never-title" }, "What it can never do"),
      h(
        "p",
        { class: "lead" },
        "The seals and the limits are proven from the model’s tables. They hold for every possible input: values out of range, missing, never seen before, or chosen to mislead.",
      ),
      never.note ? h("p", { class: "notice", role: "note" }, never.note) : null,
      broken.length ? this.broken(broken) : null,
      this.seals,
      this.forest,
    );
    state.on("output", () => this.draw());
    this.draw();
  }

  private draw(): void {
    const seals = this.found();
    const nothing = h(
      "p",
      { class: "quiet-text" },
      "No promise was made in training. The limits below hold all the same.",
    );
    put(this.seals, ...(seals.length ? seals.map((seal) => this.card(seal)) : [nothing]));
    put(this.forest, h("h3", {}, this.forestTitle), drawForest(this.state, this.unit));
  }

  private get forestTitle(): string {
    const { classes } = this.state.model.payload;
    if (classes.length > 2) return `How far each feature can move the ${this.unit}`;
    return `What each feature can add to the ${this.unit}`;
  }

  private get unit(): string {
    const { link, classes } = this.state.model.payload;
    if (classes.length > 2) return "log-odds of any two classes";
    return link === "identity" ? "prediction" : this.state.unit;
  }

  /** What a promise about the score is about, in plain words: the link keeps its order. */
  private get prediction(): string {
    const { link, outputs } = this.state.model.payload;
    return link === "logit" ? `probability of ${outputs[0]}` : link === "softmax" ? "score" : "prediction";
  }

  private title(kind: SealKind): string {
    const { unit, prediction } = this;
    return {
      increasing: `A higher value never lowers the ${prediction}`,
      decreasing: `A higher value never raises the ${prediction}`,
      convex: `The ${unit} rises ever faster, or falls ever more slowly`,
      concave: `The ${unit} rises ever more slowly, or falls ever faster`,
      isolated: "Changes no other effect",
      unchanged: "No other feature changes its effect",
      "max effect": `Moves the ${unit} by no more than`,
      ordered: "Quantiles never cross",
    }[kind];
  }

  /** Return the seals: promises that are proven, then what holds although nobody asked. */
  private found(): Seal[] {
    const { never } = this.state.model.payload;
    const kept = new Map<SealKind, PromisePayload[]>();
    for (const one of never.promises) {
      const kind = (one.way || one.kind) as SealKind;
      if (one.verdict === "proven") kept.set(kind, [...(kept.get(kind) ?? []), one]);
    }
    const seals = [...kept].map(([kind, promises]) => this.promised(kind, promises));
    for (const { kind, features } of never.found) {
      const known = seals.find((seal) => seal.kind === kind);
      if (known) {
        for (const feature of features) known.extra.add(feature);
        known.features.push(...features);
        known.foot += "; dashed: not promised, but proven";
      } else {
        seals.push({ kind, features, extra: new Set(), notes: new Map(), foot: "not promised, but proven" });
      }
    }
    return seals;
  }

  private promised(kind: SealKind, promises: PromisePayload[]): Seal {
    const features = [...new Set(promises.map((one) => one.feature).filter((at) => at !== null))];
    const notes = new Map<number, string>();
    for (const { feature, limit, range } of promises) {
      if (feature === null) continue;
      const known = this.state.model.features[feature];
      if (kind === "max effect") notes.set(feature, number(limit));
      if ((kind === "convex" || kind === "concave") && range) {
        const [first, last] = range.map((value) => (known.integral ? valueText(known, value) : number(value)));
        notes.set(feature, `${first} to ${last}`);
      }
    }
    return {
      kind,
      features,
      extra: new Set(),
      notes,
      foot: kind === "ordered" ? this.apart(promises) : "promised in training, and proven",
    };
  }

  private apart(promises: PromisePayload[]): string {
    const least = Math.min(...promises.map((one) => -(one.bound ?? 0)));
    return least > 0 ? `promised, and proven: at least ${number(least, 3)} apart` : "promised in training, and proven";
  }

  private card(seal: Seal): HTMLElement {
    const { features, payload } = this.state.model;
    const shown = seal.features.slice(0, FEW);
    const chips = shown.map((at) => {
      const note = seal.notes.get(at);
      return h(
        "li",
        { class: seal.extra.has(at) ? "extra" : "" },
        name(features[at].name),
        note === undefined ? null : " ",
        note === undefined ? null : h("span", {}, note),
      );
    });
    if (seal.features.length > FEW) chips.push(h("li", { class: "more" }, `${seal.features.length - FEW} more`));
    if (seal.kind === "ordered") chips.push(h("li", {}, payload.outputs.join(" ≤ ")));
    if (seal.features.length === features.length && features.length > FEW) {
      chips.splice(0, chips.length, h("li", {}, `all ${features.length} features`));
    }
    return h(
      "article",
      { class: "seal" },
      emblem(seal.kind),
      h(
        "div",
        {},
        h("h3", {}, this.title(seal.kind)),
        h("ul", { class: "seal-names" }, ...chips),
        h("p", { class: "seal-foot" }, seal.foot),
      ),
    );
  }

  private broken(promises: PromisePayload[]): HTMLElement {
    return h(
      "div",
      { class: "notice broken", role: "note" },
      h("b", {}, promises.length > 1 ? "Promises that are not kept" : "A promise that is not kept"),
      h("ul", {}, ...promises.map((one) => h("li", {}, one.sentence))),
    );
  }
}
