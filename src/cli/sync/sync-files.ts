/** The source of a sync: finds, reads and validates the module and assignment files of a directory. */
import { basename } from 'node:path';
import { Fault } from '../../kernel/fault.js';
import type { Diagnostic, Position } from '../../language/diagnostic.js';
import type { DeclaredAssignment } from '../../language/parse-assignments.js';
import { type ParsedAssignments, parseAssignments } from '../../language/parse-assignments.js';
import { ENDING, filesBelow, isDirectory, type ModuleFile } from '../modules/find-modules.js';
import {
  type CheckedFile,
  type CheckedText,
  checkFiles,
  prepareFile,
  type ReadModule,
  refuseInvalid,
  validFiles,
} from '../modules/read-modules.js';
import { checkValuesFile, isValuesFile, refuseDoubles, type ValuesFile } from '../modules/value-files.js';
import { readFoundFile } from '../text-files.js';

export interface SourceModule extends ReadModule {
  readonly source: string;
}

export interface SourceAssignment extends DeclaredAssignment {
  readonly file: ModuleFile;
  /** Returns the position of a module name in the file. */
  locateModule(index: number): Position;
}

/** Desired modules, value sets and assignments of a directory. */
export interface SyncSource {
  readonly modules: readonly SourceModule[];
  readonly assignments: readonly SourceAssignment[];
  readonly values: readonly ValuesFile[];
}

/** `assignments.yaml`, `web.assignments.yaml`. */
const ASSIGNMENTS = /^(?:.+\.)?assignments\.yaml$/;
/** Misspelled endings. Ignoring such a file could delete its modules or assignments. */
const ALMOST = /(?:\.orch\.yml|(?:^|\.)assignments?\.ya?ml|(?:^|\.)values?\.ya?ml)$/;

/** Reads a directory. Throws `usage` for misnamed files or none at all, `invalid_module` with all errors of all files. */
export function readSync(directory: string): SyncSource {
  if (!isDirectory(directory)) throw new Fault('usage', `${directory} is a file, and a sync takes a directory`);
  const paths = filesBelow(directory);
  const isModule = (path: string) => path.endsWith(ENDING);
  const isAssignments = (path: string) => ASSIGNMENTS.test(basename(path));
  const isKnown = (path: string) => isAssignments(path) || isValuesFile(path);
  refuseAlmost(paths.filter((path) => ALMOST.test(basename(path)) && !isKnown(path)));
  const modules = checkFiles(paths.filter(isModule).map(fileAt));
  const assignments = paths.filter(isAssignments).map(fileAt).map(checkAssignments);
  const values = paths.filter(isValuesFile).map(fileAt).map(checkValuesFile);
  if (modules.length + assignments.length + values.length === 0) {
    throw new Fault(
      'usage',
      `${directory} holds no file that ends in ${ENDING} or .values.yaml, and no assignments.yaml`,
    );
  }
  refuseInvalid([...withoutClashes(modules), ...withoutDoubles(assignments), ...values]);
  refuseDoubles(values);
  return {
    modules: validFiles(modules).map((file) => ({ ...prepareFile(file), source: file.source })),
    assignments: assignments.flatMap(declaredIn),
    values,
  };
}

const fileAt = (path: string): ModuleFile => ({ path, source: readFoundFile(path) });

function refuseAlmost([first]: readonly string[]): void {
  if (first === undefined) return;
  throw new Fault('usage', `${first} would be left out because of its name`, {
    hint: `modules end in ${ENDING}; assignments are in assignments.yaml or end in .assignments.yaml; value sets are NAME.values.yaml`,
  });
}

interface CheckedAssignments extends CheckedText {
  readonly parsed: ParsedAssignments;
}

function checkAssignments(file: ModuleFile): CheckedAssignments {
  const parsed = parseAssignments(file.source);
  return { ...file, parsed, valid: parsed.assignments !== null, diagnostics: parsed.diagnostics };
}

/** Marks the second of two modules with the same name as invalid. */
function withoutClashes(files: readonly CheckedFile[]): readonly CheckedText[] {
  const first = new Map<string, string>();
  return files.map((file) => {
    const { name, path, parsed } = file;
    const before = name === null ? undefined : first.get(name);
    if (name !== null && before === undefined) first.set(name, path);
    return before === undefined
      ? file
      : wrong(file, [clash(`module "${name}" is in ${before} too`, parsed.locate('/name'))]);
  });
}

/** Marks assignments that another file declares too as invalid; parsing finds duplicates within a file. */
function withoutDoubles(files: readonly CheckedAssignments[]): readonly CheckedText[] {
  const first = new Map<string, string>();
  return files.map((file) => {
    const found: Diagnostic[] = [];
    for (const [index, { name }] of (file.parsed.assignments ?? []).entries()) {
      const before = first.get(name);
      if (before === undefined) first.set(name, file.path);
      else
        found.push(clash(`assignment "${name}" is in ${before} too`, file.parsed.locate(`/assignments/${index}/name`)));
    }
    return found.length === 0 ? file : wrong(file, found);
  });
}

const clash = (message: string, { line, column }: Position): Diagnostic => ({
  severity: 'error',
  code: 'duplicate_name',
  message,
  path: '/name',
  line,
  column,
});

const wrong = ({ path, source, diagnostics }: CheckedText, more: readonly Diagnostic[]): CheckedText => ({
  path,
  source,
  valid: false,
  diagnostics: [...diagnostics, ...more],
});

const declaredIn = ({ path, source, parsed }: CheckedAssignments): readonly SourceAssignment[] =>
  (parsed.assignments ?? []).map((assignment, at) => ({
    ...assignment,
    file: { path, source },
    locateModule: (index) => parsed.locate(`/assignments/${at}/modules/${index}`),
  }));
