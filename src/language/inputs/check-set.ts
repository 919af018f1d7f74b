/** Checks the values of a value set against the modules whose inputs they set. */
import { canonicalJson } from '../../kernel/json.js';
import type { Steps } from '../../kernel/steps.js';
import { escapePointer } from '../../kernel/validator.js';
import { ownMember } from '../clause.js';
import type { CompiledModule } from '../compile-module.js';
import { MistakeList } from '../diagnostic.js';
import { locatedOf } from '../located.js';
import { suggestion } from '../nearest.js';
import { quoted } from '../printable.js';
import type { Input } from './input.js';
import { settle } from './settle.js';
import type { ValueSet } from './value-set.js';

export interface SetProblem {
  readonly severity: 'error' | 'warning';
  readonly message: string;
  /** JSON pointer in the value set. */
  readonly path: string;
  readonly line: number;
}

/** Returns the mistakes of a value set, in steps of a value. @param modules that are known, by name */
export function* checkSet(
  { entries }: Pick<ValueSet, 'entries'>,
  modules: ReadonlyMap<string, Pick<CompiledModule, 'inputs'>>,
): Steps<readonly SetProblem[]> {
  const problems: SetProblem[] = [];
  const checked = new Set<string>();
  for (const [index, { set, lines }] of entries.entries()) {
    for (const [module, inputs] of Object.entries(set)) {
      const known = modules.get(module);
      for (const [name, value] of Object.entries(inputs)) {
        const path = `/values/${index}/set/${escapePointer(module)}/${escapePointer(name)}`;
        const line = ownMember(lines, `${module}:${name}`) ?? 1;
        if (known === undefined) {
          problems.push({ severity: 'warning', message: `there is no module ${quoted(module)}`, path, line });
          break;
        }
        const input = known.inputs.get(name);
        if (input === undefined) {
          const message = `module "${module}" has no input ${quoted(name)}${suggestion(name, known.inputs.keys())}`;
          problems.push({ severity: 'error', message, path, line });
          continue;
        }
        const key = `${module}\0${name}\0${canonicalJson(value)}`;
        if (checked.has(key)) continue;
        checked.add(key);
        const message = problemOf(value, name, input);
        if (message !== null) problems.push({ severity: 'error', message, path, line });
        yield;
      }
    }
  }
  return problems;
}

function problemOf(value: unknown, name: string, input: Input): string | null {
  const mistakes = new MistakeList();
  const isPart = input.isMerged && typeof value === 'object' && value !== null && !Array.isArray(value);
  // A merged value may remove members, and another place may give an object its other fields.
  const whole = isPart ? Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null)) : value;
  settle(locatedOf(whole), input, { mistakes, path: '', label: `input ${quoted(name)}` });
  const found = mistakes.found.find(({ code }) => !(isPart && input.declared === 'object' && code === 'missing_key'));
  if (found === undefined) return null;
  return found.path === '' ? found.message : `input "${name}", at ${found.path.slice(1)}: ${found.message}`;
}
