// Asks the program, and tells meanwhile how many requests are before this one.

const POLL = 500;  // milliseconds between two looks at the queue

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
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    return answer;
  } finally {
    waiting = false;
    clearInterval(poll);
  }
}

export async function describe() {
  return (await fetch("/api/model")).json();
}
