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
          wrong: (pointer, message) => own.error('invalid_value', message, `${path}${pointer}`, placeAt(node, pointer)),
        },
        '',
      );
  mistakes.addAll(own.found);
  return own.failed ? null : value;
}

interface Settling {
  readonly label: string;
  wrong(pointer: string, message: string): void;
}

/** Returns the value of data that the schema of the input accepts. */
function convert(data: unknown, input: Input, settling: Settling, pointer: string): Value {
  const { declared, isSecret, pattern, of, fields } = input;
  const { wrong } = settling;
  const name = pointer === '' ? settling.label : quoted(pointer.split('/').at(-1) ?? '');
  if (isSecret) return new SecretName(isNamed(data) ? data.secret : '');
  if (typeof data === 'string') {
    if (data.length > MAX_TEXT) wrong(pointer, `${name} has at most ${MAX_TEXT} characters`);
    else if (pattern !== null && !pattern.test(data))
      wrong(pointer, `${name} cannot be ${quoted(data)}; it must match ${pattern.source}`);
    return data;
  }
  if (typeof data === 'number') {
    if (!isSound(data)) wrong(pointer, `${name} is a number that is too large`);
    return data;
  }
  if (typeof data !== 'object' || data === null) return data === true;
  const count = Object.keys(data).length;
  if (declared !== 'object' && count < input.minItems)
    wrong(pointer, `${name} needs at least ${counted(input.minItems)}`);
  if (declared !== 'object' && count > input.maxItems)
    wrong(pointer, `${name} has ${counted(count)}, and at most ${input.maxItems} are allowed`);
  const inner = (key: string) => `${pointer}/${escapePointer(key)}`;
  if (Array.isArray(data))
    return data.map((item, index) => (of === null ? '' : convert(item, of, settling, inner(String(index)))));
  const members = new Map<string, Value>();
  for (const [key, member] of Object.entries(data)) {
    const type = of ?? fields?.get(key);
    if (type === undefined) continue;
    if (of !== null && (key === '' || key.length > MAX_NAME || /\p{C}/u.test(key))) {
      wrong(
        inner(key),
        `the name ${quoted(key)} in ${name} has 1 to ${MAX_NAME} characters, none of them a control character`,
      );
    }
    members.set(key, convert(member, type, settling, inner(key)));
  }
  for (const [key, { standard }] of fields ?? []) {
    if (standard !== undefined && !members.has(key)) members.set(key, standard.value);
  }
  return Object.freeze(Object.fromEntries(members));
}

const counted = (count: number): string => (count === 1 ? 'one member' : `${count} members`);

const isNamed = (data: unknown): data is { readonly secret: string } =>
  typeof data === 'object' && data !== null && 'secret' in data && typeof data.secret === 'string';
