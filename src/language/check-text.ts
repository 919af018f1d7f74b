/** What a schema says about a text: choices, length, pattern. */
import type { MistakeList, Place } from './mistake.js';
import { suggestion } from './nearest.js';
import { quoted } from './printable.js';
import { choicesOf, type ShapeSchema } from './shape-schema.js';

interface TextToCheck {
  readonly text: string;
  readonly place: Place;
  readonly label: string;
  readonly path: string;
  readonly mistakes: MistakeList;
}

export function checkText(shape: ShapeSchema, { text, place, label, path, mistakes }: TextToCheck): void {
  const message = problemOf(shape, text, label);
  if (message !== null) mistakes.error('invalid_value', message, path, place);
}

/** What is wrong with a text, or null. */
export function problemOf(shape: ShapeSchema, text: string, label: string): string | null {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern, description } = shape;
  const choices = choicesOf(shape);
  if (choices !== null) return choices.includes(text) ? null : notAChoice(choices, text, label);
  if (text === '' && minLength > 0) return `${label} must not be empty`;
  if (text.length < minLength) return `${label} must have at least ${minLength} characters`;
  if (text.length > maxLength) return `${label} must have at most ${maxLength} characters`;
  if (pattern === undefined || new RegExp(pattern, 'u').test(text)) return null;
  const expected = description === undefined ? `text like ${pattern}` : lower(description);
  return `${label} cannot be ${quoted(text)}; expected: ${expected}`;
}

function notAChoice(choices: readonly unknown[], text: string, label: string): string {
  const names = choices.map(String);
  const list = names.map((name) => `"${name}"`).join(', ');
  return `${label} cannot be ${quoted(text)}; use ${names.length > 1 ? 'one of ' : ''}${list}${suggestion(text, names)}`;
}

const lower = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);
