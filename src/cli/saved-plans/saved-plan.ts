/** A plan in a file: what was shown, and what makes an apply do exactly that or nothing. */
import { statSync } from 'node:fs';
import * as Type from 'typebox';
import { writeOwnFile } from '../../client/own-file.js';
import { RunResultSchema } from '../../contract/runs.js';
import { KeyId, PublicKey, Seconds } from '../../contract/shapes.js';
import { Fault, messageOf } from '../../kernel/fault.js';
import { closed, nullable, optional } from '../../kernel/schema.js';
import { validator } from '../../kernel/validator.js';
import { readTextFile } from '../read-text.js';

const ENDING = '.orchplan';
/** 1 had no `sources`: its plans stored their files. */
const VERSION = 2;

const SavedPlanSchema = closed({
  orchplan: Type.Union([Type.Literal(1), Type.Literal(VERSION)]),
  created_at: Seconds,
  orchestrator: closed({ public_key: PublicKey, url: Type.String() }),
  /** Files of `-f`, which the orchestrator does not have before the apply. */
  sources: optional(
    Type.Array(
      closed({
        name: Type.String(),
        path: Type.String(),
        content: Type.String(),
        /** SHA-256 of the module's revision that was current at the plan; null when there was no such module. */
        replaces: nullable(Type.String()),
      }),
    ),
  ),
  agents: Type.Array(
    closed({
      node_id: KeyId,
      name: nullable(Type.String()),
      /** As they were named; those of assignments come on top, as at the plan. */
      modules: Type.Array(Type.String()),
      plan_hash: Type.String(),
      result: RunResultSchema,
    }),
    { minItems: 1 },
  ),
});
export type SavedPlan = Type.Static<typeof SavedPlanSchema>;
export type SavedAgent = SavedPlan['agents'][number];
export type SavedSource = NonNullable<SavedPlan['sources']>[number];

const plans = validator(SavedPlanSchema);

/** Diffs of a whole fleet may be in it. */
const MAX_BYTES = 256 * 1024 * 1024;

export const isPlanFile = (word: string): boolean => word.endsWith(ENDING);

/** Before anything is planned. Throws `usage` for a name that `orch apply` would not take. */
export function requirePlanName(path: string): void {
  if (isPlanFile(path)) return;
  throw new Fault('usage', `--out takes a file whose name ends in ${ENDING}, not "${path}"`, {
    hint: `such as --out next${ENDING}; orch apply knows it by that ending`,
  });
}

/** Replaces the file; it is for the owner alone, since diffs show what is in files. */
export function writePlanFile(path: string, plan: Omit<SavedPlan, 'orchplan'>): void {
  const whole: SavedPlan = { orchplan: VERSION, ...plan };
  try {
    writeOwnFile(path, `${JSON.stringify(whole, null, 1)}\n`);
  } catch (cause) {
    throw new Fault('invalid_plan_file', `the plan cannot be written to ${path}: ${messageOf(cause)}`, { cause });
  }
}

/** Throws `usage` when the file cannot be read, `invalid_plan_file` when it is no plan or others may have changed it. */
export function readPlanFile(path: string): SavedPlan {
  const text = readTextFile(path, MAX_BYTES);
  if (process.platform !== 'win32' && (statSync(path).mode & 0o022) !== 0) {
    throw new Fault(
      'invalid_plan_file',
      `${path} can be changed by other users, so it may not hold what you have seen`,
      {
        hint: 'plan again, and keep the file to yourself: chmod 600',
      },
    );
  }
  const data = parse(path, text);
  if (plans.check(data)) return data;
  const [problem] = plans.problems(data);
  throw invalid(path, problem ? `${problem.path || '/'} ${problem.message}` : 'it has another shape');
}

function parse(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid(path, 'it is not JSON');
  }
}

const invalid = (path: string, why: string): Fault =>
  new Fault('invalid_plan_file', `${path} holds no plan that this version of orch can apply: ${why}`, {
    hint: 'make one with: orch plan --out FILE.orchplan NODE…',
  });
