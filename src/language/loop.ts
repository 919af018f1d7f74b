/** Loops: what `for_each` goes over, the types of its elements, and the elements for one agent. */
import { type Element, type Environment, evaluate, Missing, textsOfFact } from './evaluate.js';
import { hasExpression } from './expression.js';
import { loopedType, type Scope, typeOfExpression } from './expression-types.js';
import { CLOSE, type Expression, OPEN, parseExpression, written } from './parse-expression.js';
import { quoted } from './printable.js';
import {
  byCodePoint,
  elementType,
  inferType,
  isList,
  isMap,
  isScalar,
  listed,
  nounOf,
  TEXT,
  textOf,
  type Value,
  type ValueType,
} from './values.js';
import { EvaluationError } from './work.js';

export interface Loop {
  /** An expression, or the elements as the module has them. */
  readonly source: Expression | readonly Element[];
  /** Field that tells mappings of a list apart. */
  readonly keyField: string | null;
}

export interface LoopProblem {
  /** Names and positions that lead to the mistake inside `for_each`. */
  readonly path: readonly string[];
  readonly message: string;
}

interface ReadLoop {
  readonly loop: Loop;
  readonly types: NonNullable<Scope['each']>;
}

/** Maximum characters of the key of an element. */
const MAX_KEY = 128;

/** Reads the values of `for_each` and `key`. Returns the first mistake. @param scope of the expression */
export function readLoop(data: unknown, keyField: string | null, scope: Scope): ReadLoop | LoopProblem {
  if (typeof data === 'string') return readExpression(data, keyField, scope);
  if (data === null) return { path: [], message: 'a list or a mapping is missing after "for_each"' };
  const expression = expressionIn(data, []);
  if (expression !== null) {
    return { path: expression, message: 'an expression is not possible here; write it where the value is used' };
  }
  const type = inferType(data);
  if ('problem' in type) return type.problem;
  const types = elementTypes(type, keyField);
  if (typeof types === 'string') return { path: [], message: types };
  // `inferType` has found only values.
  const elements = elementsOfValue(data as Value, keyField);
  return isProblem(elements) ? elements : { loop: { source: elements, keyField }, types };
}

/** Returns the names and positions that lead to a text with an expression, or null. */
function expressionIn(data: unknown, path: readonly string[]): readonly string[] | null {
  if (typeof data === 'string') return hasExpression(data) ? path : null;
  for (const [name, member] of typeof data === 'object' && data !== null ? Object.entries(data) : []) {
    const found = expressionIn(member, [...path, name]);
    if (found !== null) return found;
  }
  return null;
}

function readExpression(source: string, keyField: string | null, scope: Scope): ReadLoop | LoopProblem {
  const wrong = (message: string): LoopProblem => ({ path: [], message });
  const braces = source.includes(OPEN) ? OPEN : '{{';
  if (source.includes(braces)) return wrong(`"for_each" is an expression as a whole; leave out ${braces} and ${CLOSE}`);
  const expression = parseExpression(source.trim());
  if (typeof expression === 'string')
    return wrong(/^[\w-]+$/.test(source) ? `${expression}; for a list of your own, write [${source}]` : expression);
  if (expression.reference.from === 'secrets')
    return wrong('a loop cannot go over a secret, because its elements are shown');
  const typed = typeOfExpression(expression, scope);
  if (typeof typed === 'string') return wrong(typed);
  if (typed.optional && expression.reference.from === 'inputs')
    return wrong(`inputs.${expression.reference.name} may have no value; give it a default, such as []`);
  const looped = loopedType(expression, typed.type);
  // The type of an input whose declaration is wrong, which has a message of its own.
  if (looped.type === 'unknown' && expression.reference.from === 'inputs')
    return { loop: { source: expression, keyField }, types: { key: TEXT, value: looped } };
  const types = elementTypes(looped, keyField);
  return typeof types === 'string' ? wrong(types) : { loop: { source: expression, keyField }, types };
}

/** Returns the types of the elements of a loop over a type, or a message. */
function elementTypes(type: ValueType, keyField: string | null): ReadLoop['types'] | string {
  if (type.type !== 'list' && type.type !== 'map') {
    const mend = type.type === 'text' ? '; make a list of it first, such as with | split: ","' : '';
    return `a loop goes over a list or a mapping, and this is ${nounOf(type)}${mend}`;
  }
  const value = elementType(type);
  if (value === null) return 'the members of this mapping have different types; give each the same fields';
  if (value.type === 'list') return 'the elements of a loop are texts, numbers or mappings, and these are lists';
  if (value.type === 'secret' && type.type === 'list')
    return 'secrets cannot tell elements apart; make it a map, whose names do';
  const isKeyed = type.type === 'list' && value.type === 'map';
  if (!isKeyed) {
    if (keyField === null) return { key: TEXT, value };
    return `"key" names a field of the mappings in a list, and ${type.type === 'map' ? 'the names in this mapping are the keys' : 'these elements are their own keys'}; leave it out`;
  }
  const names = [...value.fields].filter(([, field]) => !field.optional && isScalar(field.type)).map(([name]) => name);
  if (keyField === null) {
    return `"key" is missing, which names the field that tells these elements apart, such as key: ${names[0] ?? 'name'}`;
  }
  if (names.includes(keyField)) return { key: TEXT, value };
  return `"key" is ${quoted(keyField)}, which is no text or number of every element${names.length === 0 ? '' : `; they have ${listed(names)}`}`;
}

const isProblem = (found: readonly Element[] | LoopProblem): found is LoopProblem => 'message' in found;

/** Returns the elements of a list in its order, and of a mapping in the order of the code points of its keys. */
function elementsOfValue(value: Value, keyField: string | null): readonly Element[] | LoopProblem {
  const elements = isList(value)
    ? value.map((element, index) => ({ key: keyOf(element, keyField), value: element, at: String(index) }))
    : Object.entries(value)
        .sort(([a], [b]) => byCodePoint(a, b))
        .map(([key, element]) => ({ key, value: element, at: key }));
  const seen = new Set<string>();
  for (const { key, at } of elements) {
    const problem = keyProblem(key) ?? (seen.has(key) ? `two elements have the key ${quoted(key)}` : null);
    if (problem !== null) return { path: [at], message: problem };
    seen.add(key);
  }
  return elements.map(({ key, value: element }) => ({ key, value: element }));
}

function keyOf(element: Value, keyField: string | null): string {
  if (keyField === null || !isMap(element)) return textOf(element);
  return textOf(element[keyField] ?? '');
}

function keyProblem(key: string): string | null {
  if (key === '') return 'the key of an element is empty';
  if (key.length > MAX_KEY) return `the key of an element has at most ${MAX_KEY} characters`;
  return /\p{C}/u.test(key) ? `the key ${quoted(key)} of an element has a control character` : null;
}

const NOUNS: Readonly<Record<string, string>> = { tags: 'tag', attributes: 'attribute', facts: 'fact' };

/** Returns the elements of a loop for an agent, or why there are none. */
export function elementsOf({ source, keyField }: Loop, environment: Environment): readonly Element[] | string {
  if (!('reference' in source)) return source;
  try {
    const value = evaluate(source, environment);
    if (value instanceof Missing) {
      const { from, name } = value.reference;
      if (from === 'inputs') return `inputs.${name} has no value`;
      const mend =
        from === 'attributes'
          ? `leave the loop out with if: ${written(value.reference)} != nil`
          : 'for none, add | default: ""';
      return `the agent has no ${NOUNS[from] ?? from} "${name}"; ${mend}`;
    }
    if (source.reference.from === 'facts') textsOfFact(source.reference, value);
    const elements = elementsOfValue(value, keyField);
    return isProblem(elements) ? elements.message : elements;
  } catch (error) {
    if (error instanceof EvaluationError) return error.message;
    throw error;
  }
}
