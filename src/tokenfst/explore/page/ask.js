// What the page asks, of the server or, in a page without one, of its own worker (local.js), and the shapes of the answers (src/tokenfst/explore/opened.py and picture.py).

/** @typedef {{shown: string, text: string | null}} Text */
/** @typedef {{id: number | null, shown: string, taken: boolean, allowed: number, intensity: number, forced: Text | null, distance: string, accepting: boolean}} Step */
/** @typedef {{id: number, shown: string, ends: boolean}} Token */
/** @typedef {{name: string, title: string, examples: [string, string][]}} Kind */
/** @typedef {{version: string, vocabulary: {name: string, size: number}, kinds: Kind[], given: string | null}} About */
/** @typedef {{facts: [string, string][], shortest: Text | null, messages: string[]}} Opened */
/** @typedef {{path: Step[], tokens: number[], text: string, here: Step, terminated: boolean, left: number | null, completion: Text | null, following: string, rules: string[], allowed: number, matching: number, offset: number, list: Token[], vocabulary: number}} Place */
/** @typedef {{x: number, y: number, after: string, accepting: boolean, here: boolean, open: boolean, least: number, rules: string[]}} State */
/** @typedef {{source: number, target: number, label: string, way: [number, number][]}} Arrow */
/** @typedef {{states: State[], arrows: Arrow[], left_out: string, here: number | null}} Picture */
/** @typedef {{accepted: boolean, said: string, ending: Text | null}} Verdict */

import { answerOf } from "./local.js";

/** What is said against a question. */
export class Refusal extends Error {}

const local = document.documentElement.dataset.answers === "worker";

/**
 * @param {string} question
 * @param {Record<string, unknown>} asked
 * @returns {Promise<any>}
 */
export async function ask(question, asked = {}) {
  const answer = await (local ? answerOf(question, asked) : served(question, asked));
  if (answer.error !== undefined) throw new Refusal(answer.error);
  return answer;
}

/**
 * @param {string} question
 * @param {Record<string, unknown>} asked
 * @returns {Promise<any>}
 */
async function served(question, asked) {
  try {
    const response = await fetch(`ask/${question}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(asked),
    });
    return await response.json();
  } catch (error) {
    throw new Refusal("the program does not answer: is tokenfst explore still running?");
  }
}
