/** JSON types, canonical JSON, and limits that are checked before parsing. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };
export type JsonObject = { readonly [key: string]: JsonValue };

/**
 * Returns canonical JSON: keys sorted by UTF-16 code units, no white space, no member for `undefined`
 * (RFC 8785 for the values that are hashed: strings, booleans, null and integers).
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    let members = '';
    for (const name of Object.keys(value).sort()) {
      const member = memberOf(value, name);
      if (member === undefined) continue;
      members += `${members === '' ? '' : ','}${JSON.stringify(name)}:${canonicalJson(member)}`;
    }
    return `{${members}}`;
  }
  return JSON.stringify(value ?? null);
}

/** Returns whether two JSON values are equal; the order of members does not count. */
export function isSameJson(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  if (Object.keys(other).length !== names.length) return false;
  return names.every((name) => Object.hasOwn(other, name) && isSameJson(memberOf(one, name), memberOf(other, name)));
}

const memberOf = (value: object, name: string): unknown => Reflect.get(value, name);

interface JsonLimits {
  /** Maximum nesting of objects and arrays. */
  readonly depth: number;
  /** Maximum number of members in all objects together. */
  readonly members: number;
  /** Maximum number of members in one object. */
  readonly width: number;
}

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;

/**
 * Returns the first limit that a JSON text exceeds, or null. It runs before the parser, because a megabyte with many
 * members costs a second of CPU to parse and validate. The result for a malformed text is undefined.
 */
export function jsonExcess(text: string, limits: JsonLimits): keyof JsonLimits | null {
  let inString = false;
  let members = 0;
  /** Member counts of the open objects, innermost last. */
  const open: number[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === BACKSLASH) at += 1;
      else if (code === QUOTE) inString = false;
    } else if (code === QUOTE) inString = true;
    else if (code === COLON) {
      members += 1;
      if (members > limits.members) return 'members';
      const width = (open.pop() ?? 0) + 1;
      if (width > limits.width) return 'width';
      open.push(width);
    } else if (code === 0x7b || code === 0x5b) {
      if (open.push(0) > limits.depth) return 'depth';
    } else if (code === 0x7d || code === 0x5d) open.pop();
  }
  return null;
}
