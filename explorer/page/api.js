// Asks the program.

/** What the program says instead of an answer: a code that the texts have "error_CODE" for. */
export class Refusal extends Error {
  static async of(response) {
    const message = `${response.status} ${response.statusText}`;
    // The web library answers by itself, and not in JSON, where there are too many connections.
    const unknown = { code: "other", values: { message } };
    const { code, values } = await response.json().catch(() => unknown);
    return Object.assign(new Refusal(message), { code, values, later: response.status !== 400 });
  }
}

/** The answer to a question. */
export async function ask(name, body, signal) {
  const response = await fetch(`/api/${name}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
  if (!response.ok) throw await Refusal.of(response);
  return response.json();
}

export async function describe() {
  return (await fetch("/api/model")).json();
}
