/** Names that other tools have for architectures and platforms. */
import { ownMember } from './clause.js';
import { type Condition, NIL, type Operand } from './parse-condition.js';
import { quoted } from './printable.js';

const NAMES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  arch: { amd64: 'x86_64', x64: 'x86_64', arm64: 'aarch64', armv8: 'aarch64', armhf: 'armv7', arm: 'armv7' },
  platform: { darwin: 'macos', osx: 'macos', win32: 'windows', win: 'windows' },
};

/** Returns the name that one of the choices has here, or null. */
export function nameHere(text: string, choices: readonly string[]): string | null {
  for (const names of Object.values(NAMES)) {
    const name = ownMember(names, text.toLowerCase());
    if (name !== undefined && choices.includes(name)) return name;
  }
  return null;
}

/** Returns a message about the first comparison with a name that no agent reports, or null. */
export function otherNameIn(condition: Condition): string | null {
  switch (condition.type) {
    case 'value':
      return null;
    case 'not':
      return otherNameIn(condition.of);
    case 'compare':
      return otherNameOf(condition.left, condition.right) ?? otherNameOf(condition.right, condition.left);
    default:
      for (const part of condition.of) {
        const found = otherNameIn(part);
        if (found !== null) return found;
      }
      return null;
  }
}

function otherNameOf(attribute: Operand, literal: Operand): string | null {
  if (attribute === NIL || literal === NIL || !('reference' in attribute) || !('literal' in literal)) return null;
  const { from, name } = attribute.reference;
  const names = from === 'attributes' ? ownMember(NAMES, name) : undefined;
  const text = literal.literal;
  if (names === undefined || typeof text !== 'string') return null;
  const here = ownMember(names, text.toLowerCase());
  return here === undefined ? null : `attributes.${name} is never ${quoted(text)}; here it is called "${here}"`;
}
