/** Checks a value against an input, and fills in the defaults of fields. */
import { escapePointer } from '../../kernel/validator.js';
import { checkShape } from '../check-shape.js';
import { MistakeList } from '../diagnostic.js';
import { dataOf, type Located, placeAt } from '../located.js';
import { quoted } from '../printable.js';
import { isSound, SecretName, type Value } from '../values.js';
import type { Input } from './input.js';
import { sizeProblem } from './value-size.js';

interface SettleContext {
  readonly mistakes: MistakeList;
  /** JSON pointer of the value. */
  readonly path: string;
  /** Name of the value in messages, such as `"workers"`. */
  readonly label: string;
}

/** Maximum characters of a text, and of the name of a member of a map. */
const MAX_TEXT = 65_536;
const MAX_NAME = 128;

/** Returns the value of an input, or null after it has reported every mistake. */
export function settle(node: Located, input: Input, { mistakes, path, label }: SettleContext): Value | null {
  const size = sizeProblem(node, label);
  if (size !== null) {
    mistakes.error('invalid_value', size, path, node);
    return null;
  }
  const own = new MistakeList();
  checkShape(input.schema, node, { mistakes: own, path, label, expressions: false });
  const value = own.failed
    ? null
    : convert(
        dataOf(node),
        input,
        {
          label,
          wrong: (at, message) => {
            const pointer = pointerOf(at);
            own.error('invalid_value', message, `${path}${pointer}`, placeAt(node, pointer));
          },
        },
        null,
      );
  mistakes.addAll(own.found);
  return own.failed ? null : value;
}

/** Where a part of a value is; null for the whole. Pointers and names are made only of places with a mistake. */
interface At {
  readonly parent: At | null;
  readonly key: string | number;
}

const pointerOf = (at: At | null): string =>
  at === null ? '' : `${pointerOf(at.parent)}/${escapePointer(String(at.key))}`;

interface Settling {
  readonly label: string;
  wrong(at: At | null, message: string): void;
}

const nameOf = (at: At | null, { label }: Settling): string => (at === null ? label : quoted(String(at.key)));

/** Returns the value of data that the schema of the input accepts. */
function convert(data: unknown, input: Input, settling: Settling, at: At | null): Value {
  const { isSecret, pattern, of, fields } = input;
  if (isSecret) return new SecretName(isNamed(data) ? data.secret : '');
  if (typeof data === 'string') {
    if (data.length > MAX_TEXT) settling.wrong(at, `${nameOf(at, settling)} has at most ${MAX_TEXT} characters`);
    else if (pattern !== null && !pattern.test(data))
      settling.wrong(at, `${nameOf(at, settling)} cannot be ${quoted(data)}; it must match ${pattern.source}`);
    return data;
  }
  if (typeof data === 'number') {
    if (!isSound(data)) settling.wrong(at, `${nameOf(at, settling)} is a number that is too large`);
    return data;
  }
  if (typeof data !== 'object' || data === null) return data === true;
  checkCount(Object.keys(data).length, input, settling, at);
  if (Array.isArray(data))
    return data.map((item, key) => (of === null ? '' : convert(item, of, settling, { parent: at, key })));
  const members = new Map<string, Value>();
  for (const [key, member] of Object.entries(data)) {
    const type = of ?? fields?.get(key);
    if (type === undefined) continue;
    const inner = { parent: at, key };
    if (of !== null && (key === '' || key.length > MAX_NAME || /\p{C}/u.test(key))) {
      const [inside, whole] = [quoted(key), nameOf(at, settling)];
      const message = `the name ${inside} in ${whole} has 1 to ${MAX_NAME} characters, none of them a control character`;
      settling.wrong(inner, message);
    }
    members.set(key, convert(member, type, settling, inner));
  }
  for (const [key, { standard }] of fields ?? []) {
    if (standard !== undefined && !members.has(key)) members.set(key, standard.value);
  }
  return Object.freeze(Object.fromEntries(members));
}

function checkCount(count: number, { declared, minItems, maxItems }: Input, settling: Settling, at: At | null): void {
  if (declared === 'object' || (count >= minItems && count <= maxItems)) return;
  const name = nameOf(at, settling);
  if (count < minItems) settling.wrong(at, `${name} needs at least ${counted(minItems)}`);
  if (count > maxItems) settling.wrong(at, `${name} has ${counted(count)}, and at most ${maxItems} are allowed`);
}

const counted = (count: number): string => (count === 1 ? 'one member' : `${count} members`);

const isNamed = (data: unknown): data is { readonly secret: string } =>
  typeof data === 'object' && data !== null && 'secret' in data && typeof data.secret === 'string';
