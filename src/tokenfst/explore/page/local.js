// Answers without a server: a worker of the page has Python and the core (tools/explorer_page/worker.js).
//
// Questions are answered one after the other. Where Python ends in the midst of one (its memory or its stack is used
// up), that question is refused and the next one begins with a new worker.

/** @type {Worker | null} */
let worker = null;
/** @type {Map<number, (answer: any) => void>} */
const waiting = new Map();
let last = 0;

/** @param {string} why */
function end(why) {
  worker?.terminate();
  worker = null;
  for (const answer of waiting.values()) answer({ error: why, kind: "budget" });
  waiting.clear();
}

function begun() {
  const made = new Worker("worker.js", { type: "module" });
  made.addEventListener("message", ({ data }) => {
    if (data.fatal !== undefined) return end(`that was too much for this page: ${data.fatal}`);
    waiting.get(data.id)?.(JSON.parse(data.answer));
    waiting.delete(data.id);
  });
  made.addEventListener("error", (event) => end(`this page does not run here: ${event.message || "its worker does not load"}`));
  return made;
}

/**
 * @param {string} question
 * @param {Record<string, unknown>} asked
 * @returns {Promise<any>}
 */
export function answerOf(question, asked) {
  worker ??= begun();
  const id = ++last;
  const found = new Promise((resolve) => waiting.set(id, resolve));
  worker.postMessage({ id, question, asked });
  return found;
}
