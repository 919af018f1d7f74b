/** The commands of `orch values`: value sets, which give inputs of modules their values. */
import type { ApiClient } from '../../client/api-client.js';
import { NO_REVISION } from '../../contract/run-targets.js';
import { Fault, isFault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { argument, argumentList, defineCommand } from '../define-command.js';
import { EXIT } from '../exit-status.js';
import { count, formatTime, timeCells } from '../format.js';
import { type Compared, comparedLines, compareWith } from '../modules/compare-files.js';
import { allowAutomaticOption, consentToReach, reachLines, requireAllowed } from '../modules/reach.js';
import { diagnosticLines, refuseInvalid, summarizeErrors } from '../modules/read-modules.js';
import { checkValuesFile, refuseDoubles, splitPaths, type ValuesFile } from '../modules/value-files.js';
import { valueReachOf } from '../modules/value-reach.js';
import { integer } from '../options.js';
import { type Column, fields, lines, linesOf, stack, stackOf, styled, textLines, type View } from '../outcome.js';
import { operatorNames } from '../record-names.js';
import { plainText } from '../render/paint.js';
import { readTextFile, storeEdited } from '../text-files.js';

const nameArgument = argument('SET', 'name of the value set', 'values');

const SET_COLUMNS: readonly Column[] = [
  { title: 'SET', whole: true },
  { title: 'REVISION', right: true },
  { title: 'UPLOADED' },
  { title: 'BY', spare: 1 },
  { title: 'MODULES' },
];

/** `orch values list`. */
export const listValueSets = defineCommand({
  examples: ['orch values list'],
  access: 'viewer',
  columns: SET_COLUMNS,
  run: async (context) => {
    const api = await context.api();
    const sets = await api.call('listValueSets', { signal: context.signal });
    const nameOf = await operatorNames(context, api);
    const timeOf = timeCells(context.clock.now(), context.globals);
    return {
      body: sets,
      names: sets.map(({ name }) => name),
      view: {
        kind: 'table',
        columns: SET_COLUMNS,
        rows: sets.map(({ name, revision, uploaded_at, uploaded_by, modules }) => [
          name,
          String(revision),
          timeOf(uploaded_at),
          nameOf(uploaded_by),
          modules.join(', '),
        ]),
        empty: 'No value sets. Upload one with: orch values push FILE',
      },
    };
  },
});

/** `orch values show`. */
export const showValueSet = defineCommand({
  examples: ['orch values show prod', 'orch values show prod --revision 3'],
  detail: ['Prints the text alone unless it goes to a terminal.'],
  access: 'viewer',
  args: { name: nameArgument },
  options: { revision: integer('N', 'an older revision, also of a removed value set', 1) },
  run: async (context, { name, revision }) => {
    const api = await context.api();
    const query = { revision: revision ?? null };
    const set = await api.call('getValueSet', { params: { name }, query, signal: context.signal });
    const content = linesOf(textLines(set.content));
    const answer = { body: set, names: [set.name] };
    if (context.streams.stdout.isTTY !== true) return { ...answer, view: content };
    const nameOf = await operatorNames(context, api);
    return {
      ...answer,
      view: stack(
        fields(
          ['Value set', set.name],
          ['Revision', String(set.revision)],
          ['Uploaded', `${formatTime(set.uploaded_at)} by ${nameOf(set.uploaded_by)}`],
          ['SHA-256', set.sha256],
        ),
        content,
      ),
    };
  },
});

const REVISION_COLUMNS: readonly Column[] = [
  { title: 'REVISION', right: true },
  { title: 'UPLOADED' },
  { title: 'BY' },
  { title: 'SHA-256', whole: true, spare: 1 },
];

/** `orch values revisions`. */
export const listValueRevisions = defineCommand({
  examples: ['orch values revisions prod'],
  detail: [
    'Newest first, also of a removed value set; a removal has no SHA-256. The last 50 are kept; orch values show and',
    'diff accept --revision N.',
  ],
  access: 'viewer',
  columns: REVISION_COLUMNS,
  args: { name: nameArgument },
  run: async (context, { name }) => {
    const api = await context.api();
    const body = await api.call('listValueSetRevisions', { params: { name }, signal: context.signal });
    const nameOf = await operatorNames(context, api);
    const timeOf = timeCells(context.clock.now(), context.globals);
    return {
      body,
      names: body.revisions.map(({ revision }) => String(revision)),
      view: {
        kind: 'table',
        columns: REVISION_COLUMNS,
        rows: body.revisions.map(({ revision, uploaded_at, uploaded_by, sha256 }) => [
          String(revision),
          timeOf(uploaded_at),
          nameOf(uploaded_by),
          sha256 === null ? styled('warn', 'removed') : sha256.slice(0, 12),
        ]),
        empty: 'No revisions.',
      },
    };
  },
});

/** `orch values diff`. */
export const diffValueFiles = defineCommand({
  examples: ['orch values diff prod.values.yaml', 'orch values diff prod.values.yaml --revision 3'],
  detail: ['Shows what pushing would change. Stores nothing.'],
  access: 'viewer',
  args: {
    paths: argumentList('PATH', 'files NAME.values.yaml, or directories whose *.values.yaml are all compared', 'file'),
  },
  options: { revision: integer('N', 'compare with an older revision [the current one]', 1) },
  run: async (context, { paths, revision }) => {
    const files = readValueFiles(paths);
    refuseInvalid(files, 'invalid_values');
    const api = await context.api();
    const compared: Compared[] = [];
    for (const file of files) {
      const request = { params: { name: file.name }, query: { revision: revision ?? null }, signal: context.signal };
      const stored = await api.call('getValueSet', request).catch((error: unknown) => {
        if (revision === undefined && isFault(error, 'values_not_found')) return null;
        throw error;
      });
      compared.push(compareWith(file, stored));
    }
    return {
      body: compared.length === 1 ? compared[0] : compared,
      names: compared.filter(({ has_changes }) => has_changes).map(({ name }) => name),
      view: stackOf(compared.map((one) => linesOf(comparedLines(one)))),
    };
  },
});

/** `orch values check`. */
export const checkValueFiles = defineCommand({
  examples: ['orch values check prod.values.yaml', 'orch values check site/'],
  detail: [
    'Shows all errors of the files at once. Needs no orchestrator and knows no inputs of modules: orch module check',
    'looks at both together, orch values push at the stored modules. Ends with 1 if a file has an error.',
  ],
  access: 'local',
  args: {
    paths: argumentList('PATH', 'files NAME.values.yaml, or directories whose *.values.yaml are all checked', 'file'),
  },
  run: async (_context, { paths }) => {
    const files = readValueFiles(paths);
    const errors = summarizeErrors(files);
    const message =
      errors === null
        ? styled('good', `${count(files.length, 'file is', 'files are')} valid.`)
        : styled('bad', `${errors}.`);
    return {
      body: files.map(({ path, name, valid, diagnostics }) => ({ path, name, valid, diagnostics })),
      names: files.map(({ name }) => name),
      view: stackOf([...files.map((file) => linesOf(diagnosticLines(file))), lines(message)]),
      exitStatus: errors === null ? EXIT.done : EXIT.error,
    };
  },
});

/** Reads files, also wrong ones. Throws `usage` for paths without a value set. */
function readValueFiles(paths: readonly string[]): readonly ValuesFile[] {
  const single = paths.length === 1 && paths[0]?.endsWith('.yaml') ? paths[0] : undefined;
  const files =
    single === undefined ? splitPaths(paths).values : [checkValuesFile({ path: single, source: readTextFile(single) })];
  if (files.length === 0) throw new Fault('usage', `${paths.join(', ')}: there is no file that ends in .values.yaml`);
  refuseDoubles(files);
  return files;
}

/** `orch values push`. */
export const pushValueFiles = defineCommand({
  examples: ['orch values push prod.values.yaml', 'orch values push site/ --allow-automatic-applies'],
  detail: [
    'NAME.values.yaml is stored as a new revision of the set NAME. First it shows the machines whose values change,',
    'and asks, as orch module publish does, also about --allow-automatic-applies. Unknown inputs and wrong values are',
    'errors, unknown modules warnings.',
  ],
  access: 'operator',
  consent: true,
  args: {
    paths: argumentList('PATH', 'files NAME.values.yaml, or directories whose *.values.yaml are all stored', 'file'),
  },
  options: { allowAutomaticApplies: allowAutomaticOption },
  run: async (context, { paths, allowAutomaticApplies }) => {
    const files = readValueFiles(paths);
    refuseInvalid(files, 'invalid_values');
    const pushed = await pushValues(context, await context.api(), files, allowAutomaticApplies);
    if (pushed === null) throw new Fault('cancelled', 'not confirmed, nothing was stored');
    return {
      body: pushed.length === 1 ? pushed[0] : pushed,
      names: pushed.map(({ name }) => name),
      view: pushedView(pushed),
    };
  },
});

/** `orch values edit`. */
export const editValueSet = defineCommand({
  examples: ['orch values edit prod'],
  detail: [
    'Opens the value set in your editor (VISUAL, else EDITOR), and stores what you leave, as orch values push does. A text',
    'with errors can be edited again. If the set was changed meanwhile, nothing is stored, and your text is kept in a file.',
  ],
  access: 'operator',
  consent: true,
  args: { name: nameArgument },
  options: { allowAutomaticApplies: allowAutomaticOption },
  run: async (context, { name, allowAutomaticApplies }) => {
    const api = await context.api();
    const { content, sha256 } = await api.call('getValueSet', { params: { name }, signal: context.signal });
    const path = `${name}.values.yaml`;
    const text = {
      text: content,
      ending: `.${path}`,
      instead: `change a file, and store it: orch values push ${path}`,
    };
    const source = await context.prompt.edit(`Edit ${path}`, text, (edited) => {
      const file = checkValuesFile({ path, source: edited });
      return file.valid ? null : diagnosticLines(file).map(plainText).join('\n');
    });
    const pushed = await storeEdited({ name: path, text: source, warn: context.warn }, async () => {
      const stored = await pushValues(context, api, [checkValuesFile({ path, source })], allowAutomaticApplies, sha256);
      if (stored === null) throw new Fault('cancelled', 'not confirmed, nothing was stored');
      return stored;
    });
    return {
      body: pushed[0],
      names: [name],
      view: pushedView(pushed),
    };
  },
});

interface Pushed {
  readonly name: string;
  readonly changed: boolean;
  readonly revision: number;
}

const pushedView = (pushed: readonly Pushed[]): View =>
  linesOf(
    pushed.map(({ name, changed, revision }) =>
      changed ? `Stored revision ${revision} of ${name}.` : `Unchanged: ${name}.`,
    ),
  );

/**
 * Stores value sets after the consent. Returns null, without a change, for a no.
 * @param base SHA-256 of the revision that the texts were made from; absent for what is current
 */
async function pushValues(
  context: Context,
  api: ApiClient,
  files: readonly ValuesFile[],
  isAllowed: boolean,
  base?: string,
) {
  const { signal } = context;
  const reaches = [];
  for (const file of files) reaches.push(await valueReachOf(context, api, file));
  for (const warning of reaches.flatMap(({ warnings }) => warnings)) context.warn(warning);
  const changed = reaches.filter(({ sha256, current }) => sha256 !== current);
  const question = `Store ${count(changed.length, 'value set')}: ${changed.map(({ name }) => name).join(', ')}?`;
  if (changed.length > 0 && !(await consentToReach(context, changed, { isAllowed, question }))) return null;
  const stored = [];
  for (const [index, { name, source: content }] of files.entries()) {
    const replaces = base ?? reaches[index]?.current ?? NO_REVISION;
    stored.push(await api.call('uploadValueSet', { body: { name, content, replaces }, signal }));
  }
  return stored;
}

/** `orch values remove`. */
export const removeValueSet = defineCommand({
  examples: ['orch values remove prod'],
  detail: ['Shows the machines whose values change, and asks, as orch values push does.'],
  access: 'operator',
  consent: true,
  args: { name: nameArgument },
  options: { allowAutomaticApplies: allowAutomaticOption },
  run: async (context, { name, allowAutomaticApplies }) => {
    const api = await context.api();
    const { headers } = await api.callWithHeaders('getValueSet', { params: { name }, signal: context.signal });
    const reach = await valueReachOf(context, api, { name, source: null });
    requireAllowed(context, [reach], allowAutomaticApplies, 'deleting');
    for (const line of reachLines(reach, 'Deleting')) context.note(line);
    await context.prompt.consent(`Delete the value set ${name}?`);
    await api.call('removeValueSet', { params: { name }, ifMatch: headers.etag, signal: context.signal });
    return { names: [name], view: lines(`Deleted ${name}.`) };
  },
});
