// Elements, made of text only: nothing that comes over the network is ever taken for markup.

type Child = Node | string | null | undefined | false;
type Properties = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;

/**
 * An element; properties that are functions become event listeners, `true` is an empty attribute, `false` and nullish
 * are none.
 */
export function h<K extends keyof HTMLElementTagNameMap>(
	tag: K,
	properties: Properties = {},
	...children: Child[]
): HTMLElementTagNameMap[K] {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(properties)) {
		if (typeof value === "function") element.addEventListener(name, value as EventListener);
		else if (value === true) element.setAttribute(name, "");
		else if (value !== false && value != null) element.setAttribute(name, String(value));
	}
	fill(element, ...children);
	return element;
}

/** Has these children and no others. */
export function fill(element: Element, ...children: Child[]): void {
	element.replaceChildren(...children.filter((child): child is Node | string => child != null && child !== false));
}

/** Sets text where it differs, so that nothing is laid out anew for nothing. */
export function text(element: Element, value: string): void {
	if (element.textContent !== value) element.textContent = value;
}

/** Says something to people who do not see the page. */
export function say(message: string): void {
	const place = document.getElementById("say");
	if (place) text(place, message);
}

/** Whether a key is typed into a field. */
export const isTyped = ({ target }: Event): boolean =>
	target instanceof HTMLInputElement || target instanceof HTMLSelectElement;

/** Whether a key belongs to a shortcut of the browser or the system. */
export const hasModifier = ({ ctrlKey, metaKey, altKey }: KeyboardEvent): boolean => ctrlKey || metaKey || altKey;
