/** Converts composed YAML into located data. */
import { type Alias, isAlias, isMap, isScalar, isSeq, type Pair, Scalar, type YAMLMap, type YAMLSeq } from 'yaml';
import { escapePointer } from '../kernel/validator.js';
import type { MistakeList, Place, TextLines } from './diagnostic.js';
import {
  isPlain,
  type Located,
  type LocatedList,
  type LocatedMap,
  type LocatedMember,
  type LocatedScalar,
  NOWHERE,
} from './located.js';
import { quoted } from './printable.js';
import { blankAdvice } from './strange-blank.js';
import { Anchors } from './yaml-guard.js';

interface TextToLocate {
  readonly text: string;
  readonly lines: TextLines;
  readonly mistakes: MistakeList;
}

interface LocateContext extends TextToLocate {
  readonly anchors: Anchors;
}

/** Converts a composed document. Reports and drops duplicate, reserved and merge keys and invalid aliases. */
export function locate(node: unknown, text: TextToLocate): Located {
  const anchors = new Anchors(text.mistakes);
  const located = locateNode(node, { ...text, anchors }, '', NOWHERE);
  anchors.warnOfUnused();
  return located;
}

/** @param key place of an empty value */
function locateNode(node: unknown, context: LocateContext, path: string, key: Place): Located {
  const { anchors } = context;
  if (isAlias(node)) return anchors.valueOf(node.source, placeOfAlias(node), path) ?? emptyAt(placeOfAlias(node));
  const anchor = isMap(node) || isSeq(node) || isScalar(node) ? node.anchor : undefined;
  const begun = anchors.begin(anchor, context.text, key);
  const located = locateValue(node, context, path, key);
  anchors.end(begun, located);
  return located;
}

const placeOfAlias = ({ range }: Alias): Place => ({ start: range?.[0] ?? 0, end: range?.[1] ?? 0 });

const emptyAt = (place: Place): LocatedScalar => ({ type: 'scalar', value: null, raw: '', ...place });

function locateValue(node: unknown, context: LocateContext, path: string, key: Place): Located {
  if (isMap(node)) return locateMap(node, context, path);
  if (isSeq(node)) return locateList(node, context, path);
  const value = isScalar(node) ? node.value : null;
  const [start, end] = (isScalar(node) && node.range) || [key.start, key.start];
  const raw = context.text.slice(start, end);
  const place = raw === '' ? key : { start, end };
  if (typeof value === 'string' && LONE_SURROGATE.test(value)) {
    context.mistakes.error('control_character', 'the text holds half of a surrogate pair', path, place);
  }
  return { type: 'scalar', value: isPlain(value) ? value : null, raw, ...place };
}

/** Escapes can produce surrogates that no file can contain. */
const LONE_SURROGATE = /\p{Surrogate}/u;

function locateList(node: YAMLSeq, context: LocateContext, path: string): LocatedList {
  const start = node.range?.[0] ?? 0;
  const items = node.items.map((item, index) => {
    // An item without a value still has a place, after its dash.
    const at = (isScalar(item) && item.range?.[0]) || start;
    return locateNode(item, context, `${path}/${index}`, { start: at, end: at });
  });
  return { type: 'list', items, start, end: start };
}

function locateMap(node: YAMLMap, context: LocateContext, path: string): LocatedMap {
  const members = new Map<string, LocatedMember>();
  for (const pair of node.items) {
    const key = keyOf(pair, context, path);
    if (key === null) {
      context.anchors.useIn(pair.value);
      continue;
    }
    const first = members.get(key.name);
    if (first === undefined) {
      const value = locateNode(pair.value, context, `${path}/${escapePointer(key.name)}`, key.place);
      members.set(key.name, { key: key.place, value });
    } else {
      const { line } = context.lines.positionAt(first.key.start);
      const message = `duplicate key ${quoted(key.name)}; it is already given on line ${line}`;
      context.mistakes.error('duplicate_key', message, `${path}/${escapePointer(key.name)}`, key.place);
    }
  }
  const start = node.range?.[0] ?? 0;
  return { type: 'map', members, start, end: start };
}

/** Maximum characters of a key, because keys are repeated in the path of every mistake below them. */
const MAX_KEY = 256;

/** Returns the key of a pair, or null for a key that modules may not have. */
function keyOf(
  pair: Pair,
  context: LocateContext,
  path: string,
): { readonly name: string; readonly place: Place } | null {
  const { key } = pair;
  if (!isScalar(key) || typeof key.value !== 'string' || !key.range) return null;
  const name = key.value;
  const place = { start: key.range[0], end: key.range[1] };
  const { mistakes } = context;
  if (name.length > MAX_KEY) {
    mistakes.error('yaml_syntax', `a key is longer than ${MAX_KEY} characters`, path, place);
    return null;
  }
  if (name === '<<' && key.type === Scalar.PLAIN) {
    mistakes.error('yaml_merge_key', 'merge keys are not part of the module language', `${path}/<<`, place);
    return null;
  }
  const blank = blankAdvice(name.charAt(0));
  if (blank !== null && key.type === Scalar.PLAIN) {
    mistakes.error('yaml_syntax', blank, path, { start: place.start, end: place.start + 1 });
    return null;
  }
  if (name === '__proto__') {
    mistakes.error('reserved_key', '"__proto__" cannot be used as a key', `${path}/__proto__`, place);
    return null;
  }
  return { name, place };
}
