// Asks the program, and tells meanwhile how many requests are before this one.

const POLL = 500;  // milliseconds between two looks at the queue

/** What the program says instead of an answer: a code that the texts have "error_CODE" for. */
export class Refusal extends Error {
  static async of(response) {
    const message = `${response.status} ${response.statusText}`;
    // The web library answers by itself, and not in JSON, where there are too many connections.
    const unknown = { code: response.status === 503 ? "queue_full" : "other", values: { message } };
    const { code, values } = await response.json().catch(() => unknown);
    return Object.assign(new Refusal(message), { code, values, later: response.status !== 400 });
  }
}

/** The answer to a question; `onPosition` gets 0 while it is computed, else the number before it. */
export async function ask(name, body, signal, onPosition) {
  const ticket = crypto.randomUUID();
  let waiting = true;
  const poll = setInterval(async () => {
    const response = await fetch(`/api/queue?ticket=${ticket}`).catch(() => null);
    const position = response?.ok ? (await response.json()).position : null;
    if (waiting && position !== null) onPosition(position);
  }, POLL);
  try {
    const response = await fetch(`/api/${name}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Ticket": ticket },
      body: JSON.stringify(body),
      signal,
    });
    if (!response.ok) throw await Refusal.of(response);
    return await response.json();
  } finally {
    waiting = false;
    clearInterval(poll);
  }
}

export async function describe() {
  return (await fetch("/api/model")).json();
}
