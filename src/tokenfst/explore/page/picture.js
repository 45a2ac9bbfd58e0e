// The picture of the automaton: drawn once, then moved and zoomed by the view box, by mouse, touch or keys.

import { byId, drawn, element, number } from "./dom.js";

/** @typedef {import("./ask.js").Picture} Picture */
/** @typedef {import("./ask.js").State} State */

const RADIUS = 17;
const DIAGONAL = RADIUS * Math.SQRT1_2;
const MARGIN = 60;
const LONGEST = 20;

/** @type {{x: number, y: number, width: number, height: number}} */
let view = { x: 0, y: 0, width: 1, height: 1 };
/** @type {SVGElement | null} */
let picture = null;
let whole = { ...view };

/** @param {string} text */
const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);

/** @param {State} state */
function words(state) {
  const rule = state.rules.at(-1);
  return rule === undefined || rule === "" ? state.after : `${rule}: ${state.after}`;
}

/** @param {State} state */
function told(state) {
  const after = state.after.startsWith('"') ? `after ${state.after}` : state.after;
  const parts = [after];
  if (state.rules.length) parts.push(`in ${state.rules.join(" > ")}`);
  parts.push(state.accepting ? "the text may end here" : `at least ${number(state.least)} byte${state.least === 1 ? "" : "s"} to the end`);
  if (state.open) parts.push("leads to states that are not drawn");
  if (state.here) parts.push("the text so far leads here");
  return parts.join("; ");
}

/**
 * The line of an arrow through its points, from edge to edge of the states.
 * @param {[number, number][]} way
 */
function line(way) {
  if (way.length === 1) {
    const [x, y] = way[0];
    return `M${x - 9},${y - RADIUS + 2} C${x - 34},${y - 58} ${x + 34},${y - 58} ${x + 9},${y - RADIUS + 1}`;
  }
  const from = way[0];
  const to = way[way.length - 1];
  if (to[0] === from[0]) {
    const side = from[0] + RADIUS;
    return `M${side},${from[1]} C${side + 45},${from[1]} ${side + 45},${to[1]} ${side + 3},${to[1]}`;
  }
  if (to[0] < from[0]) {
    const height = Math.max(from[1], to[1]) + bow(way);
    // From the lower left to the lower right, beside the words below the states.
    const [x, u] = [from[0] - DIAGONAL, to[0] + DIAGONAL + 2];
    return `M${x},${from[1] + DIAGONAL} C${x - 20},${height} ${u + 20},${height} ${u},${to[1] + DIAGONAL + 2}`;
  }
  let last = [from[0] + RADIUS, from[1]];
  let text = `M${last}`;
  for (const [x, y] of [...way.slice(1, -1), [to[0] - RADIUS - 3, to[1]]]) {
    const half = (x - last[0]) / 2;
    text += ` C${last[0] + half},${last[1]} ${x - half},${y} ${x},${y}`;
    last = [x, y];
  }
  return text;
}

/**
 * How far below its ends the control points of an arrow that leads back lie.
 * @param {[number, number][]} way
 */
function bow(way) {
  return 46 + 0.16 * (way[0][0] - way[way.length - 1][0]);
}

/**
 * Where the label of an arrow stands.
 * @param {[number, number][]} way
 */
function middle(way) {
  if (way.length === 1) return [way[0][0], way[0][1] - 50];
  if (way.length > 2) {
    const [x, y] = way[Math.floor(way.length / 2)];
    return [x, y - 5];
  }
  const [[x, y], [u, v]] = way;
  if (x === u) return [x + 52, (y + v) / 2];
  if (u > x) return [(x + u) / 2, (y + v) / 2 - 5];
  // The middle of the curve: an eighth of each end, three of each control point.
  return [(x + u) / 2, (y + v + 2 * DIAGONAL) / 8 + 0.75 * (Math.max(y, v) + bow(way)) + 10];
}

/** @param {Picture} given */
export function show(given) {
  byId("left-out").textContent = given.left_out;
  const arrows = given.arrows.map(({ way, label }) => {
    const [x, y] = middle(way);
    return drawn(
      "g",
      {},
      drawn("path", { d: line(way), "marker-end": "url(#tip)" }),
      drawn("text", { x, y, class: "label" }, drawn("title", {}, label), cut(label)),
    );
  });
  const states = given.states.map((state, index) => {
    const group = drawn("g", {
      transform: `translate(${state.x} ${state.y})`,
      class: [state.here ? "here" : "", state.open ? "open" : ""].join(" ").trim(),
    });
    group.append(drawn("circle", { r: RADIUS }));
    if (state.accepting) group.append(drawn("circle", { r: RADIUS - 4, "fill-opacity": 0 }));
    group.append(drawn("text", { y: 4, class: "number" }, String(index)));
    group.append(drawn("text", { y: RADIUS + 13, class: "words" }, cut(words(state))));
    group.append(drawn("title", {}, told(state)));
    return group;
  });
  const xs = given.states.map((state) => state.x);
  const ys = [...given.states.map((state) => state.y), ...given.arrows.flatMap(({ way }) => [...way.map(([, y]) => y), middle(way)[1]])];
  whole = {
    x: Math.min(...xs) - MARGIN,
    y: Math.min(...ys) - MARGIN - 15,
    width: Math.max(...xs) - Math.min(...xs) + 2 * MARGIN,
    height: Math.max(...ys) - Math.min(...ys) + 2 * MARGIN + 30,
  };
  const tip = drawn(
    "marker",
    { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto-start-reverse" },
    drawn("path", { d: "M0,0.5 L8,4 L0,7.5 z" }),
  );
  picture = drawn(
    "svg",
    { role: "img", "aria-label": `An automaton of ${given.states.length} states and ${given.arrows.length} arrows` },
    drawn("defs", {}, tip),
    ...arrows,
    ...states,
  );
  byId("picture").replaceChildren(picture);
  list(given);
  fit();
}

/** @param {string} why */
export function clear(why) {
  picture = null;
  byId("left-out").textContent = why;
  byId("picture").replaceChildren();
  byId("state-list").replaceChildren();
}

/**
 * The same as a table, for those who read and those who listen.
 * @param {Picture} given
 */
function list(given) {
  /** @type {string[][]} */
  const onward = given.states.map(() => []);
  for (const { source, target, label } of given.arrows) onward[source].push(`${label} → ${target}`);
  const rows = given.states.map((state, index) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, String(index)),
      element("td", {}, told(state)),
      element("td", {}, onward[index].join(", ")),
    ),
  );
  const head = ["State", "What it is", "Leads to"].map((name) => element("th", { scope: "col" }, name));
  byId("state-list").replaceChildren(
    element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)),
  );
}

function look() {
  picture?.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
}

/** Show all of it; a long automaton from its first state on, no smaller than can be read. */
export function fit() {
  const box = byId("picture").getBoundingClientRect();
  const most = Math.max(box.width, 1) / 0.55;
  view = { ...whole };
  if (view.width > most) {
    const height = (most * box.height) / Math.max(box.width, 1);
    const y = view.y + view.height / 2 - height / 2;
    view = { x: view.x, y: height < view.height ? y : view.y, width: most, height: Math.min(height, view.height) };
  }
  look();
}

/**
 * @param {number} factor
 * @param {[number, number]} [at] the share of width and height that stays where it is
 */
export function zoom(factor, at = [0.5, 0.5]) {
  const width = Math.min(Math.max(view.width * factor, 60), whole.width * 8);
  const height = (view.height * width) / view.width;
  view = { x: view.x + (view.width - width) * at[0], y: view.y + (view.height - height) * at[1], width, height };
  look();
}

/**
 * Move by shares of what is seen.
 * @param {number} right
 * @param {number} down
 */
export function move(right, down) {
  view.x += right * view.width;
  view.y += down * view.height;
  look();
}

/** What can be seen now, for tests and for nobody else. */
export const seen = () => ({ ...view });

/** @type {Record<string, () => void>} */
const KEYS = {
  ArrowLeft: () => move(-0.15, 0),
  ArrowRight: () => move(0.15, 0),
  ArrowUp: () => move(0, -0.15),
  ArrowDown: () => move(0, 0.15),
  "+": () => zoom(0.8),
  "=": () => zoom(0.8),
  "-": () => zoom(1.25),
  0: fit,
};

export function listen() {
  const box = byId("picture");
  box.addEventListener("keydown", (event) => {
    const act = KEYS[event.key];
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  box.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const { left, top, width, height } = box.getBoundingClientRect();
      zoom(event.deltaY > 0 ? 1.15 : 0.87, [(event.clientX - left) / width, (event.clientY - top) / height]);
    },
    { passive: false },
  );
  /** @type {Map<number, PointerEvent>} */
  const fingers = new Map();
  const apart = () => {
    const [one, other] = [...fingers.values()];
    return Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
  };
  box.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, event);
    box.setPointerCapture(event.pointerId);
  });
  box.addEventListener("pointermove", (event) => {
    const last = fingers.get(event.pointerId);
    if (last === undefined) return;
    const { width, height } = box.getBoundingClientRect();
    if (fingers.size === 2) {
      const before = apart();
      fingers.set(event.pointerId, event);
      zoom(before / Math.max(apart(), 1));
      return;
    }
    const scale = Math.max(view.width / width, view.height / height);
    fingers.set(event.pointerId, event);
    move(((last.clientX - event.clientX) * scale) / view.width, ((last.clientY - event.clientY) * scale) / view.height);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    box.addEventListener(end, (event) => fingers.delete(/** @type {PointerEvent} */ (event).pointerId));
  }
  byId("zoom-in").addEventListener("click", () => zoom(0.8));
  byId("zoom-out").addEventListener("click", () => zoom(1.25));
  byId("fit").addEventListener("click", fit);
}
