/** Parses query strings strictly: each name is known and given once, numbers and booleans follow the schema. */
import type { TSchema } from 'typebox';
import { API_BASE } from '../../src/contract/contract.js';
import { Fault, type FaultDetail } from '../../src/kernel/fault.js';
import { escapePointer, MAX_PROBLEMS, validator } from '../../src/kernel/validator.js';

interface FieldSchema {
  readonly type?: unknown;
  readonly anyOf?: readonly FieldSchema[];
}

/**
 * Creates the parser of a route's query. It returns the parameters by name, with integers and booleans converted; an
 * integer beyond the safe range is clamped to it. It throws `invalid_query` naming every parameter that is malformed,
 * repeated, unknown or out of range.
 * @param schema undefined when the route takes no query
 */
export function queryReader(schema: TSchema | undefined): (text: string) => unknown {
  const known = new Map<string, FieldSchema>(Object.entries(propertiesOf(schema)));
  const check = schema && validator(schema);
  return (text) => {
    if (text === '' && !check) return undefined;
    const { values, errors } = readPairs(text, known);
    const all = errors.length > 0 ? errors : (check?.problems(values) ?? []);
    if (all.length > 0) throw invalidQuery(all);
    return check ? values : undefined;
  };
}

/** Returns the `Link` header that names the next page of a list; null and absent members are omitted. */
export function linkTo(path: string, query: Readonly<Record<string, unknown>>): { readonly link: string } {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value != null) parameters.set(name, String(value));
  return { link: `<${API_BASE}${path}?${parameters}>; rel="next"` };
}

interface PageOf<Item> {
  readonly path: string;
  /** Query with the effective limit. */
  readonly query: Readonly<Record<string, unknown>> & { readonly limit: number };
  readonly cursorOf: (last: Item) => string | number;
}

/** Returns a page, with the header that names the next one. `read` holds up to one item more than the limit. */
export function pageFrom<Item>(
  read: readonly Item[],
  { path, query, cursorOf }: PageOf<Item>,
): { readonly items: Item[]; readonly headers: { readonly link?: string } } {
  const items = read.slice(0, query.limit);
  const last = items.at(-1);
  if (read.length <= query.limit || last === undefined) return { items, headers: {} };
  return { items, headers: linkTo(path, { ...query, cursor: cursorOf(last) }) };
}

/** Returns the header that names the next page of a list that is paged by numbers; none on the last page. */
export function nextByNumber(
  path: string,
  query: Readonly<Record<string, unknown>>,
  { total, limit, offset }: { readonly total: number; readonly limit: number; readonly offset: number },
): { readonly link?: string } {
  return offset + limit < total ? linkTo(path, { ...query, limit, offset: offset + limit }) : {};
}

/** Returns the part of a URL after its first `?`. */
export function queryOf(url: string): string {
  const at = url.indexOf('?');
  return at < 0 ? '' : url.slice(at + 1);
}

function readPairs(text: string, known: ReadonlyMap<string, FieldSchema>) {
  const values = new Map<string, unknown>();
  const errors: FaultDetail[] = [];
  const complain = (name: string, message: string) => errors.push({ path: `/${escapePointer(name)}`, message });
  for (const pair of text.split('&').filter((part) => part !== '')) {
    if (errors.length >= MAX_PROBLEMS) break;
    const equals = pair.indexOf('=');
    const name = decode(equals < 0 ? pair : pair.slice(0, equals));
    const value = decode(equals < 0 ? '' : pair.slice(equals + 1));
    const field = known.get(name ?? '');
    if (name === null || value === null) complain(pair, `${JSON.stringify(pair)} is not valid percent-encoding`);
    else if (!field) complain(name, `unknown parameter ${JSON.stringify(name)}`);
    else if (values.has(name)) complain(name, `${JSON.stringify(name)} is given more than once`);
    else values.set(name, convert(field, value));
  }
  return { values: Object.fromEntries(values), errors };
}

/** Returns the value in the field's type, or the text itself for the validator to reject. */
function convert(field: FieldSchema, text: string): unknown {
  const { type } = field.anyOf?.find((branch) => branch.type !== 'null') ?? field;
  if (type === 'integer' && /^-?\d+$/.test(text)) {
    return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number(text), Number.MAX_SAFE_INTEGER));
  }
  if (type === 'number' && /^-?\d+(\.\d+)?$/.test(text)) return Number(text);
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}

function invalidQuery(errors: readonly FaultDetail[]): Fault {
  const shown = errors.slice(0, 3).map(({ path, message }) => `${path.slice(1)}: ${message}`);
  const more = errors.length > shown.length ? `, and ${errors.length - shown.length} more` : '';
  return new Fault('invalid_query', `the query is not valid: ${shown.join(', ')}${more}`, { errors });
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return null;
  }
}

const propertiesOf = (schema: { readonly properties?: Readonly<Record<string, FieldSchema>> } | undefined) =>
  schema?.properties ?? {};
