// Server-sent events by fetch, which can say who asks; EventSource cannot.

/** What a stream has come to. */
export interface Ear {
	/** The server answers. */
	open(): void;
	/** An event came. */
	event(name: string, data: string): void;
	/** The stream has ended or was refused; it is begun anew when this has. */
	lost(refused: Response | null): Promise<void> | void;
}

/** Milliseconds after which a stream that has ended is begun anew. */
const AGAIN = 1000;

/** Receives the events of a path, and goes on where it was cut off, until the returned function is called. */
export function events(path: string, headers: () => HeadersInit, handler: Ear): () => void {
	const ended = new AbortController();
	const { signal } = ended;
	let last = "";

	const take = (message: string): void => {
		let name = "message";
		const data: string[] = [];
		for (const line of message.split("\n")) {
			const colon = line.indexOf(":");
			const value = line.slice(colon + 1).replace(/^ /, "");
			if (line.startsWith("event:")) name = value;
			else if (line.startsWith("data:")) data.push(value);
			else if (line.startsWith("id:")) last = value;
		}
		if (data.length > 0) handler.event(name, data.join("\n"));
	};

	const connect = async (): Promise<Response | null> => {
		const asked = new Headers(headers());
		if (last) asked.set("Last-Event-ID", last);
		const response = await fetch(path, { headers: asked, signal, cache: "no-store" });
		if (!response.ok || !response.body) return response;
		handler.open();
		const reader = response.body.getReader();
		const decoder = new TextDecoder();
		let text = "";
		for (;;) {
			// Nothing is read before what came is taken: a page that is slow gets less.
			const { done, value } = await reader.read();
			if (done) return null;
			let searched = Math.max(0, text.length - 1);
			text += decoder.decode(value, { stream: true });
			for (;;) {
				const end = text.indexOf("\n\n", searched);
				if (end < 0) break;
				take(text.slice(0, end));
				text = text.slice(end + 2);
				searched = 0;
			}
		}
	};

	void (async () => {
		while (!signal.aborted) {
			const refused = await connect().catch(() => null);
			if (signal.aborted) return;
			await handler.lost(refused);
			await new Promise((resolve) => setTimeout(resolve, AGAIN));
		}
	})();
	return () => ended.abort();
}
