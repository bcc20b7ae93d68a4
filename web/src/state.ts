/** What the reader has chosen, and who wants to know. */

import { type Explanation, explain } from "./evaluate.ts";
import { type Feature, locate, type Model, rowValues, sumOf, typicalValue } from "./model.ts";
import type { Value } from "./payload.ts";

export type Topic = "output" | "values" | "theme" | "pair";

export class State {
  /** The output that all sections show. */
  output: number;
  /** The row of "what if". */
  values: Value[];
  /** Where it started: a carried row, or the typical one. */
  startRow: number | null = null;
  start: Value[];
  pair: number[] = [];
  /** While it prints, a page is light. */
  isOnPaper = false;
  private readonly listeners = new Map<Topic, (() => void)[]>();
  private cached: Explanation | null = null;

  constructor(readonly model: Model) {
    this.start = model.features.map((feature) => typicalValue(model, feature));
    this.values = this.start.slice();
    this.output = 0;
  }

  on(topic: Topic, listener: () => void): void {
    this.listeners.set(topic, [...(this.listeners.get(topic) ?? []), listener]);
  }

  tell(topic: Topic): void {
    for (const listener of this.listeners.get(topic) ?? []) listener();
  }

  get isDark(): boolean {
    if (this.isOnPaper) return false;
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  /** The row of "what if", explained. */
  get explanation(): Explanation {
    this.cached ??= explain(this.model, locate(this.model, this.values));
    return this.cached;
  }

  setValue(i: number, value: Value): void {
    this.values[i] = value;
    this.cached = null;
    this.tell("values");
  }

  load(row: number | null): void {
    this.startRow = row;
    this.start =
      row === null
        ? this.model.features.map((feature) => typicalValue(this.model, feature))
        : rowValues(this.model, row);
    this.values = this.start.slice();
    this.cached = null;
    this.tell("values");
  }

  setOutput(output: number): void {
    this.output = output;
    this.tell("output");
  }

  setPair(pair: number[]): void {
    this.pair = pair;
    this.tell("pair");
  }

  /** Importance of a feature: the standard deviation of its contribution over the training rows. */
  importance(feature: Feature): number {
    const { variance } = this.model.tables;
    return Math.sqrt(variance[feature.at * this.model.nOutputs + this.output]);
  }

  /** Share of a contribution's variance that its own value explains. */
  additivity(feature: Feature): number {
    const { variance, residual, scoreVariance } = this.model.tables;
    const at = feature.at * this.model.nOutputs + this.output;
    const delta = 1e-6 * scoreVariance[this.output] + 1e-300;
    return Math.min(Math.max((variance[at] - residual[at] + delta) / (variance[at] + delta), 0), 1);
  }

  /** How much the other features move the contribution over the training rows, a standard deviation. */
  shift(feature: Feature): number {
    return Math.sqrt(this.model.tables.residual[feature.at * this.model.nOutputs + this.output]);
  }

  stability(feature: Feature): number | null {
    if (this.model.nMembers === 1 && !this.model.payload.reduction) return null;
    return this.model.tables.agreement[feature.at * this.model.nOutputs + this.output];
  }

  /** How much `cause` changes the contribution of `feature`, root mean square. */
  influence(feature: number, cause: number): number {
    const { nFeatures, nOutputs, tables } = this.model;
    return tables.influence[(feature * nFeatures + cause) * nOutputs + this.output];
  }

  missingShare(feature: Feature): number {
    const weight = this.model.tables.weight.subarray(feature.start, feature.start + feature.nValues + 2);
    const total = sumOf(weight);
    return total > 0 ? weight[feature.nValues] / total : 0;
  }

  /** Features by importance, the largest first. */
  ranked(): Feature[] {
    return this.model.features.slice().sort((a, b) => this.importance(b) - this.importance(a) || a.at - b.at);
  }

  /** What a contribution adds to, in words. */
  get unit(): string {
    const { payload } = this.model;
    const output = payload.outputs[this.output];
    if (payload.link === "logit") return `log-odds of ${output}`;
    if (payload.link === "softmax") return `score of ${output}`;
    const target = output === "score" ? payload.target : output;
    return payload.link === "log" ? `logarithm of ${target}` : target;
  }
}
