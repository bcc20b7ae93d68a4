/** Elements, made from data: text is always text, never markup. */

export type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>;

const SVG = "http://www.w3.org/2000/svg";

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child);
  }
}

/** Return an HTML element; attributes that start with "on" are listeners. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

/** Return an SVG element. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  fill(element, attributes, children);
  return element;
}

/** Return a name as the data has it: isolated, so that right-to-left text disturbs nothing around it. */
export function name(text: string, className = "name"): HTMLElement {
  return h("bdi", { class: className, title: text.length > 40 ? text : null }, text);
}

/** Return a text of at most `limit` characters, the middle left out. */
export function shorten(text: string, limit: number): string {
  const letters = Array.from(text.replace(/\s+/g, " ").trim());
  if (letters.length <= limit) return letters.join("");
  const head = Math.ceil(((limit - 1) * 2) / 3);
  return `${letters.slice(0, head).join("")}…${letters.slice(letters.length - (limit - 1 - head)).join("")}`;
}

/** Replace everything in an element; what had the focus and comes again, by its data-key, has it still. */
export function put(element: Element, ...children: Child[]): void {
  const focused = document.activeElement;
  const key = focused && element.contains(focused) ? focused.getAttribute("data-key") : null;
  element.replaceChildren(...children.filter((child): child is Node | string => Boolean(child)));
  if (key === null) return;
  for (const one of element.querySelectorAll<HTMLElement>("[data-key]")) {
    if (one.getAttribute("data-key") === key) one.focus({ preventScroll: true });
  }
}

/** Build an element's content when it comes near the screen, or before printing. */
export class Lazy {
  private readonly waiting = new Map<Element, () => void>();
  private readonly observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) if (entry.isIntersecting) this.build(entry.target);
    },
    { rootMargin: "400px" },
  );

  add(element: Element, build: () => void): void {
    this.waiting.set(element, build);
    this.observer.observe(element);
  }

  buildAll(limit: number): void {
    for (const element of [...this.waiting.keys()].slice(0, limit)) this.build(element);
  }

  clear(): void {
    for (const element of this.waiting.keys()) this.observer.unobserve(element);
    this.waiting.clear();
  }

  private build(element: Element): void {
    this.observer.unobserve(element);
    this.waiting.get(element)?.();
    this.waiting.delete(element);
  }
}
