// The page: what is open, which tokens were accepted, and what the buttons do.

import { Refusal, ask } from "./ask.js";
import { byId, define, element, number } from "./dom.js";
import * as picture from "./picture.js";

/** @typedef {import("./ask.js").About} About */
/** @typedef {import("./ask.js").Opened} Opened */
/** @typedef {import("./ask.js").Place} Place */
/** @typedef {import("./ask.js").Step} Step */
/** @typedef {import("./ask.js").Verdict} Verdict */

const PAGE = 60;
const PAUSE = 150;
const MOST_FORCED = 200;

/** @type {About} */
let about;
/** What is open: the kind and the text that the server is asked about. */
let open = { kind: "", text: "" };
/** @type {Opened | null} */
let opened = null;
/** @type {Place | null} */
let place = null;
/** @type {number[]} */
let tokens = [];
let offset = 0;
let asked = 0;
/** How many questions are under way. */
let working = 0;

const kind = /** @type {HTMLSelectElement} */ (byId("kind"));
const example = /** @type {HTMLSelectElement} */ (byId("example"));
const source = /** @type {HTMLTextAreaElement} */ (byId("source"));
const candidate = /** @type {HTMLTextAreaElement} */ (byId("candidate"));
const search = /** @type {HTMLInputElement} */ (byId("search"));
const limit = /** @type {HTMLInputElement} */ (byId("limit"));

/**
 * Do something that asks the server; what it says against it is shown where the person looks.
 * @param {() => Promise<void>} work
 * @param {"error" | "verdict"} where
 */
async function attempt(work, where = "verdict") {
  working += 1;
  byId("busy").textContent = "Working…";
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    say(where, error.message, true);
  } finally {
    working -= 1;
    if (working === 0) byId("busy").textContent = "";
  }
}

/**
 * @param {"error" | "verdict"} where
 * @param {string} text
 * @param {boolean} against
 */
function say(where, text, against) {
  const box = byId(where);
  box.hidden = text === "";
  box.textContent = text;
  box.classList.toggle("refused", against);
}

function limited() {
  const given = Number(limit.value);
  return limit.value !== "" && Number.isInteger(given) && given > 0 ? given : null;
}

async function openConstraint() {
  say("error", "", false);
  say("verdict", "", false);
  for (const id of ["automaton", "path", "next"]) byId(id).hidden = true;
  byId("facts").replaceChildren();
  open = { kind: kind.value, text: source.value };
  tokens = [];
  offset = 0;
  search.value = "";
  const mine = ++asked;
  const found = /** @type {Opened} */ (await ask("open", open));
  if (mine !== asked) return;
  opened = found;
  define(byId("facts"), [...found.facts, ...found.messages.map((text) => /** @type {[string, string]} */ (["Warning", text]))]);
  for (const id of ["automaton", "path", "next"]) byId(id).hidden = false;
  await go();
  await draw();
}

/** Ask for the place that the tokens lead to, and show it. */
async function go() {
  const mine = ++asked;
  const found = /** @type {Place} */ (
    await ask("step", { ...open, tokens, limit: limited(), query: search.value, offset, count: PAGE })
  );
  if (mine !== asked) return;
  place = found;
  showPath(found);
  showNext(found);
}

async function draw() {
  const around = /** @type {HTMLSelectElement} */ (byId("around")).value === "here";
  const states = Number(/** @type {HTMLSelectElement} */ (byId("states")).value);
  try {
    picture.show(await ask("picture", { ...open, tokens: place?.tokens ?? [], around, states }));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    picture.clear(error.message);
  }
}

/**
 * Accept tokens, go back, or start again; the list begins at its first page.
 * @param {number[]} now
 */
async function moveTo(now) {
  tokens = now;
  offset = 0;
  search.value = "";
  say("verdict", "", false);
  await go();
  await draw();
}

/** @param {Place} found */
function showPath(found) {
  byId("text").textContent = found.text;
  byId("chips").replaceChildren(...found.path.map((step, index) => chip(step, index)));
  const here = found.here;
  /** @type {[string, string][]} */
  const facts = [["Tokens so far", number(found.tokens.length)]];
  if (found.terminated) facts.push(["State", "the end token was accepted: the text is complete"]);
  else {
    facts.push(["Allowed next", `${number(found.allowed)} of ${number(found.vocabulary)} tokens`]);
    facts.push(["May end here", here.accepting ? "yes" : "no"]);
    facts.push(["Distance left", here.distance]);
    if (found.left !== null) facts.push(["Tokens left", number(found.left)]);
    if (here.forced) facts.push(["Forced", here.forced.shown]);
    if (found.following) facts.push(["Characters", found.following]);
    if (found.completion) facts.push(["Shortest way on", found.completion.shown]);
    if (found.rules.length) facts.push(["Open rules", found.rules.join(" > ")]);
  }
  define(byId("here"), facts);
  /** @type {HTMLButtonElement} */ (byId("back")).disabled = found.path.length === 0;
  /** @type {HTMLButtonElement} */ (byId("restart")).disabled = found.path.length === 0;
  /** @type {HTMLButtonElement} */ (byId("forced")).disabled = !here.forced?.text && found.allowed !== 1;
}

/**
 * One token so far, in the colour of its mask; a press goes back to the place before it.
 * @param {Step} step
 * @param {number} index
 */
function chip(step, index) {
  const label = `${step.shown}, token ${step.id}: ${number(step.allowed)} allowed here${step.taken ? "" : ", and not this one"}`;
  const button = element(
    "button",
    { type: "button", title: `${label}. Go back to the place before it`, "aria-label": `${label}. Go back before it` },
    step.shown,
    element("small", {}, number(step.allowed)),
  );
  // Not the middle of the two colours: no ink can be read on it.
  const hot = step.intensity >= 0.45;
  const share = Math.round(hot ? 70 + (step.intensity - 0.45) * 54 : step.intensity * 66);
  button.style.setProperty("--chip", step.taken ? `color-mix(in srgb, var(--hot) ${share}%, var(--cold))` : "var(--red)");
  button.style.setProperty("--chip-ink", step.taken && !hot ? "var(--ink)" : "var(--back)");
  button.addEventListener("click", () => attempt(() => moveTo(tokens.slice(0, index))));
  return element("li", {}, button);
}

/** @param {Place} found */
function showNext(found) {
  const shown = found.list.map((token) => {
    const button = element(
      "button",
      { type: "button", class: token.ends ? "ends" : "", "aria-label": `${token.shown}, token ${token.id}` },
      token.shown,
      element("small", {}, String(token.id)),
    );
    button.addEventListener("click", () =>
      attempt(async () => {
        await moveTo([...(place?.tokens ?? []), token.id]);
        byId("next").focus({ preventScroll: true });
      }),
    );
    return element("li", {}, button);
  });
  byId("tokens").replaceChildren(...shown);
  const matching = search.value === "" ? "" : `, ${number(found.matching)} of them match`;
  byId("count").textContent = `${number(found.allowed)} of ${number(found.vocabulary)} tokens${matching}`;
  const pages = Math.max(1, Math.ceil(found.matching / PAGE));
  byId("page").textContent = `Page ${number(found.offset / PAGE + 1)} of ${number(pages)}`;
  /** @type {HTMLButtonElement} */ (byId("previous")).disabled = found.offset === 0;
  /** @type {HTMLButtonElement} */ (byId("following")).disabled = found.offset + PAGE >= found.matching;
}

/** Walk along the text in the box, and say where a token is refused. */
async function walkAlong() {
  const { tokens: cut } = await ask("cut", { ...open, candidate: candidate.value });
  await moveTo(cut);
  const refused = place?.path.find((step) => !step.taken);
  if (refused === undefined || refused.id === null) {
    const over = place?.here.accepting ? "All tokens are allowed, and the text may end here." : "All tokens are allowed; the text is not complete.";
    say("verdict", over, false);
    return;
  }
  const { said } = await ask("explain", { ...open, tokens: place?.tokens ?? [], token: refused.id, limit: limited() });
  say("verdict", said, true);
}

async function check() {
  const found = /** @type {Verdict} */ (await ask("check", { ...open, candidate: candidate.value }));
  say("verdict", found.accepted ? "Yes: the text is in the constraint." : `No: ${found.said}`, !found.accepted);
}

async function takeForced() {
  let now = place?.tokens ?? [];
  // One token that is alone is forced; where there are several, those are taken that spell the forced text.
  while (place !== null && !place.terminated && place.allowed === 1 && !place.list[0].ends && now.length < MOST_FORCED) {
    now = [...now, place.list[0].id];
    await moveTo(now);
  }
  const text = place?.here.forced?.text;
  if (text) {
    const { tokens: cut } = await ask("cut", { ...open, candidate: text });
    await moveTo([...now, ...cut]);
  }
}

function fillExamples() {
  const found = about.kinds.find((each) => each.name === kind.value);
  const options = (found?.examples ?? []).map(([title, text]) => element("option", { value: text }, title));
  example.replaceChildren(...options);
  example.disabled = options.length === 0;
  if (example.parentElement !== null) example.parentElement.hidden = options.length === 0;
  source.readOnly = found === undefined;
  source.value = found === undefined ? (about.given ?? "") : (found.examples[0]?.[1] ?? "");
}

/**
 * Call something once nothing has changed for a moment.
 * @param {() => void} work
 */
function paused(work) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, PAUSE);
  };
}

function listen() {
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(openConstraint, "error");
  });
  source.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      attempt(openConstraint, "error");
    }
  });
  kind.addEventListener("change", fillExamples);
  example.addEventListener("change", () => {
    source.value = example.value;
  });
  search.addEventListener(
    "input",
    paused(() => {
      offset = 0;
      attempt(go);
    }),
  );
  limit.addEventListener("input", paused(() => attempt(go)));
  byId("back").addEventListener("click", () => attempt(() => moveTo((place?.path ?? []).slice(0, -1).map((step) => step.id ?? 0))));
  byId("restart").addEventListener("click", () => attempt(() => moveTo([])));
  byId("forced").addEventListener("click", () => attempt(takeForced));
  byId("previous").addEventListener("click", () => {
    offset = Math.max(0, offset - PAGE);
    attempt(go);
  });
  byId("following").addEventListener("click", () => {
    offset += PAGE;
    attempt(go);
  });
  byId("walk-form").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(walkAlong);
  });
  byId("check").addEventListener("click", () => attempt(check));
  byId("shortest").addEventListener("click", () => {
    candidate.value = opened?.shortest?.text ?? "";
    if (!opened?.shortest) say("verdict", "No shortest text is known: only tokens can walk this constraint, or the search took too long.", true);
  });
  byId("ask-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const token = Number(/** @type {HTMLInputElement} */ (byId("ask")).value);
    attempt(async () => {
      const found = await ask("explain", { ...open, tokens: place?.tokens ?? [], token, limit: limited() });
      say("verdict", found.said, !found.allowed);
      byId("verdict").scrollIntoView({ block: "nearest" });
    });
  });
  for (const id of ["around", "states"]) byId(id).addEventListener("change", () => attempt(draw));
  picture.listen();
}

async function begin() {
  about = await ask("about");
  byId("about").textContent = `${about.version} · ${about.vocabulary.name}, ${number(about.vocabulary.size)} tokens`;
  const given = about.given === null ? [] : [element("option", { value: "given" }, "From the command line")];
  kind.replaceChildren(...given, ...about.kinds.map((each) => element("option", { value: each.name }, each.title)));
  fillExamples();
  listen();
  await openConstraint();
}

attempt(begin, "error");
