/** Kinds that change a part of a file of others: its owner, its mode and all other bytes stay. */
import type { TSchema } from 'typebox';
import { commandFailure } from '../command.js';
import {
  CHECKED,
  checkedWrite,
  checkFailure,
  checkValidate,
  isInPlace,
  NOT_IN_PLACE,
  uncheckedYet,
} from '../file-check.js';
import { isLongerThan } from '../file-content.js';
import { type FileStep, MAX_CONTENT_BYTES, type PathFact, READ_BATCH } from '../host.js';
import type { Body, BodyProblem, Decision, FieldChange, PlanContext, ResourceKind } from '../kind.js';
import { defineResource } from '../kind.js';
import { findMissingParents } from '../missing-parents.js';
import { checkUnixPath } from '../unix/unix-metadata.js';
import { aboveUnixPath, parentOfUnixPath, UNIX_RULES } from '../unix/unix-path.js';
import { checkTextFile, textIn } from './text-file.js';
import { contentOf, linesOf, type TextLines } from './text-lines.js';

/** The text after an edit, and its differences. */
export interface Edited {
  readonly lines: TextLines;
  readonly changes: readonly FieldChange[];
  readonly text?: { readonly before: string | null; readonly after: string };
}

/** Why a text cannot be edited, without the path. */
export interface EditRefusal {
  readonly refusal: string;
}

interface FileEdit<B extends object> {
  readonly kind: `${string}-${string}`;
  readonly schema: TSchema;
  check(body: B): readonly BodyProblem[];
  /** Returns the path of the file. */
  path(body: B): string;
  /** Returns the name of the part within the file. */
  part(body: B): string;
  /** True when a missing file is made. */
  creates(body: B): boolean;
  /** Returns the command that checks the file after the edit; none for kinds without one. */
  validate?(body: B): string | null | undefined;
  /** True when the text has the part, in whatever form. */
  has(body: B, lines: TextLines): boolean;
  /** Puts the part into a text; null when it is there as wanted. */
  put(body: B, lines: TextLines): Edited | EditRefusal | null;
  /** Takes the part out of a text; null when it is not there. */
  take(body: B, lines: TextLines): TextLines | EditRefusal | null;
  forbids?: ResourceKind<B>['forbids'];
}

/** The file, and whether it has the part. */
export interface EditHave {
  readonly file: PathFact;
  readonly isThere: boolean;
}

export function defineFileEdit<B extends object>(edit: FileEdit<B>): ResourceKind<B, EditHave> {
  const identity = (body: B) => `${edit.path(body)}: ${edit.part(body)}`;
  return defineResource<B, EditHave>({
    kind: edit.kind,
    family: edit.kind,
    platforms: ['linux', 'macos'],
    schema: edit.schema,
    check: (body) => [
      ...checkUnixPath({ path: edit.path(body) }),
      ...edit.check(body),
      ...checkValidate(edit.validate?.(body), true),
    ],
    identity,
    edits: edit.path,
    ...(edit.forbids && { forbids: edit.forbids }),
    requires: (body) => [{ family: 'path', identity: edit.path(body) }, ...parentOfUnixPath(edit.path(body))],
    above: (body) => aboveUnixPath({ path: edit.path(body) }),
    batch: READ_BATCH,
    read(host, wants, purpose) {
      const paths = [...new Set(wants.map(edit.path))];
      const facts = host.observe(paths.map((path) => ({ path, content: true, entries: false })));
      const isImpossible = (want: B) =>
        purpose !== 'removal' && host.platform !== 'linux' && isInPlace(edit.validate?.(want));
      const files = new Map(paths.map((path, index) => [path, facts[index]]));
      return wants.map((want) => {
        const file = isImpossible(want) ? NOT_IN_PLACE : (files.get(edit.path(want)) ?? UNREAD);
        const text = textIn(file);
        return { file, isThere: text !== null && edit.has(want, linesOf(text)) };
      });
    },
    exists: ({ isThere }) => isThere,

    plan(want, { file, isThere }, context): Decision {
      const path = edit.path(want);
      const found = contentAt(path, file, context);
      if ('code' in found) return { action: 'fail', ...found };
      if (found.text === null) return newFile(edit, want, file, context);
      const edited = edit.put(want, linesOf(found.text));
      const validate = edit.validate?.(want);
      if (edited === null) return uncheckedYet({ path, validate }, context);
      if ('refusal' in edited) return unsuitable(edited.refusal);
      const { changes, text } = edited;
      const refusal = refusalOfSecret(path, file, context);
      if (refusal !== null) return refusal;
      return writing(
        path,
        { action: isThere ? 'update' : 'create', changes, ...(text && { text }) },
        found.text,
        edited.lines,
        { validate, copy: copyOf(file) },
      );
    },

    planRemoval(last, { file }, context): Decision {
      const path = edit.path(last);
      const found = contentAt(path, file, context);
      if ('code' in found) {
        if (file.type === 'unreadable') return { action: 'fail', ...found };
        return { action: 'release', reason: found.message };
      }
      if (found.text === null) return { action: 'none' };
      const taken = edit.take(last, linesOf(found.text));
      if (taken === null) return { action: 'none' };
      if ('refusal' in taken) return unsuitable(taken.refusal);
      return writing(path, { action: 'remove', changes: [] }, found.text, taken);
    },

    ...(edit.validate && {
      memo: (want: B) => (isInPlace(edit.validate?.(want)) ? CHECKED : null),
      explain: (_host, _body, step, result) => checkFailure(step, result) ?? commandFailure(step.command, result),
    }),
  });
}

const UNREAD: PathFact = { type: 'unreadable', code: 'observe_failed', message: 'the file was not read' };
export const NEW_MODE = 0o644;
const PRIVATE_MODE = 0o600;

const unsuitable = (message: string): Decision => ({ action: 'fail', code: 'content_unsuitable', message });

/** Returns the text that an edit begins with, null for a file that is missing, or why it cannot be edited. */
export function contentAt(
  path: string,
  file: PathFact,
  context: PlanContext,
): { readonly text: string | null } | Pick<Extract<Decision, { action: 'fail' }>, 'code' | 'message'> {
  const written = context.written(path);
  if (written !== null) return { text: written };
  return checkTextFile(path, file) ?? { text: textIn(file) };
}

/** Plans a file that holds nothing but the part. */
function newFile<B extends object>(edit: FileEdit<B>, want: B, file: PathFact, context: PlanContext): Decision {
  const path = edit.path(want);
  if (!edit.creates(want) && !context.mayAppear) {
    const message = `${path} does not exist; "create: true" makes it, or declare what brings it before this`;
    return { action: 'fail', code: 'file_missing', message };
  }
  const edited = edit.put(want, linesOf(''));
  if (edited === null) return { action: 'none' };
  if ('refusal' in edited) {
    return context.mayAppear
      ? { action: 'create', changes: [], steps: [], reason: MAY_COME }
      : unsuitable(edited.refusal);
  }
  const { changes, text } = edited;
  if (file.type !== 'absent' || !edit.creates(want)) {
    return { action: 'create', changes, ...(text && { text }), steps: [], reason: MAY_COME };
  }
  if (file.isVirtual) return unsuitable(`${path} would be a file of the kernel, which only the kernel makes`);
  const missing = findMissingParents({ path }, file, context, UNIX_RULES);
  if (missing.refusal) return missing.refusal;
  const mode = context.sensitive ? PRIVATE_MODE : NEW_MODE;
  const write = { ...writeStep(path, null, edited.lines, mode), ...missing.parents };
  const copy = { owner: null, group: null, mode };
  return {
    action: 'create',
    changes: [...missing.changes, ...changes],
    ...(text && { text }),
    ...checkedWrite({ validate: edit.validate?.(want), write, copy }),
    ...missing.makes,
  };
}

const MAY_COME = 'the file may come with an earlier change';

/** Adds the step that writes the edited text, unless the file becomes too large to be edited again. */
function writing(
  path: string,
  decision: { readonly action: 'create' | 'update' | 'remove'; readonly changes: readonly FieldChange[] },
  before: string,
  lines: TextLines,
  check: Pick<Parameters<typeof checkedWrite>[0], 'validate' | 'copy'> = UNCHECKED_WRITE,
): Decision {
  const step = writeStep(path, before, lines, null);
  if (isLongerThan(step.content, MAX_CONTENT_BYTES)) {
    return unsuitable(`${path} would have more than ${MAX_CONTENT_BYTES} bytes, up to which a file is edited`);
  }
  return { ...decision, ...checkedWrite({ ...check, write: step }) };
}

/** For removals, which are not checked. */
const UNCHECKED_WRITE = { validate: null, copy: { owner: null, group: null, mode: NEW_MODE } };

/** Returns owner and mode of the copy that is checked: those of the file, which it keeps. */
const copyOf = (file: PathFact) =>
  file.type === 'file'
    ? { owner: String(file.uid), group: String(file.gid), mode: file.mode }
    : { owner: null, group: null, mode: NEW_MODE };

/** Returns the step that writes an edited text. @param over the text that it was made of; null for no file */
export const writeStep = (path: string, over: string | null, lines: TextLines, mode: number | null) =>
  ({ do: 'write-file', path, content: contentOf(lines), owner: null, group: null, mode, over }) satisfies FileStep;

/** Refuses to put a secret into a file that a user could have put there to read it. */
function refusalOfSecret(path: string, file: PathFact, { sensitive }: PlanContext): Decision | null {
  if (!sensitive || file.type !== 'file' || file.exposedTo !== 'others') return null;
  const message = `another user could have put ${path} there, so no secret is written into it; keep it in a directory of root`;
  return { action: 'fail', code: 'unsafe_path', message };
}

/** Returns the mistakes of a text that has to be one line. */
export function checkOneLine(name: string, text: unknown): readonly BodyProblem[] {
  if (typeof text !== 'string') return [];
  const problem = (why: string) => [{ path: `/${name}`, message: `${name} ${why}` }];
  if (/[\r\n]/.test(text)) return problem('must be one line, without line breaks');
  if (text.includes('\0')) return problem('must not contain a NUL character');
  return text.isWellFormed() ? [] : problem('must be valid Unicode text');
}

/** Members of a `file-unix` of which each gives the whole content. */
const WHOLE: readonly string[] = ['content', 'template', 'source', 'url'];

/** True when a resource with the path of a file leaves no room for edits of that file. */
export const isWhole = (kind: string, body: Body): boolean =>
  kind !== 'file-unix' || (body.only_if_missing !== true && WHOLE.some((name) => body[name] != null));
