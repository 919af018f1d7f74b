/** The commands of `orch module` about uploaded modules, and its JSON Schema. */

import { argument, argumentList, defineCommand } from '../define-command.js';
import { formatTime, timeCells } from '../format.js';
import { integer, text } from '../options.js';
import { type Column, fields, lines, linesOf, stack, textLines } from '../outcome.js';
import { operatorNames } from '../record-names.js';
import { createFile } from '../text-files.js';

const MODULE_COLUMNS: readonly Column[] = [{ title: 'MODULE', whole: true }, { title: 'UPLOADED' }, { title: 'BY' }];

/** `orch module list`. */
export const listModules = defineCommand({
  examples: ['orch module list'],
  access: 'viewer',
  columns: MODULE_COLUMNS,
  run: async (context) => {
    const api = await context.api();
    const modules = await api.call('listModules', { signal: context.signal });
    const nameOf = await operatorNames(context, api);
    const timeOf = timeCells(context.clock.now(), context.globals);
    return {
      body: modules,
      names: modules.map(({ name }) => name),
      view: {
        kind: 'table',
        columns: MODULE_COLUMNS,
        rows: modules.map(({ name, uploaded_at, uploaded_by }) => [name, timeOf(uploaded_at), nameOf(uploaded_by)]),
        empty: 'No modules. Publish one with: orch module publish FILE',
      },
    };
  },
});

/** `orch module show`. */
export const showModule = defineCommand({
  examples: ['orch module show nginx', 'orch module show nginx --revision 3'],
  detail: ['Prints the text alone unless it goes to a terminal. "orch module pull" also writes the files beside it.'],
  access: 'viewer',
  args: { name: argument('MODULE', 'name of the module', 'module') },
  options: { revision: integer('N', 'an older revision', 1) },
  run: async (context, { name, revision }) => {
    const api = await context.api();
    const query = { revision: revision ?? null };
    const module = await api.call('getModule', { params: { name }, query, signal: context.signal });
    const content = linesOf(textLines(module.content));
    const answer = { body: module, names: [module.name] };
    if (context.streams.stdout.isTTY !== true) return { ...answer, view: content };
    const nameOf = await operatorNames(context, api);
    return {
      ...answer,
      view: stack(
        fields(
          ['Module', module.name],
          ['Revision', String(module.revision)],
          ['Uploaded', `${formatTime(module.uploaded_at)} by ${nameOf(module.uploaded_by)}`],
          ['SHA-256', module.sha256],
          ...Object.keys(module.files ?? {}).map((path, index) => [index === 0 ? 'Files' : '', path] as const),
        ),
        content,
      ),
    };
  },
});

/** `orch module pull`. */
export const pullModuleFiles = defineCommand({
  examples: [
    'orch module pull nginx',
    'orch module pull nginx site --out modules',
    'orch module pull nginx --revision 3',
  ],
  detail: [
    'Writes each module to MODULE.orch.yaml as it was published, comments included, and the files beside it. If a',
    'file with other content is there, nothing is written.',
  ],
  access: 'viewer',
  args: { names: argumentList('MODULE', 'names of modules', 'module') },
  options: {
    out: text('DIR', 'write into this directory [the current one]', { completes: 'file' }),
    revision: integer('N', 'an older revision', 1),
  },
  run: async (context, { names, out, revision }) => {
    const { pullModules } = await import('../modules/pull.js');
    const pulled = await pullModules(context, await context.api(), {
      names,
      out: out ?? '.',
      revision: revision ?? null,
    });
    return {
      body: pulled,
      names: pulled.map(({ path }) => path),
      view: linesOf(
        pulled.map(({ name, path, revision, changed }) =>
          changed ? `Wrote revision ${revision} of ${name} to ${path}.` : `Unchanged: ${path} (revision ${revision}).`,
        ),
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

/** `orch module revisions`. */
export const listRevisions = defineCommand({
  examples: ['orch module revisions nginx'],
  detail: [
    'The newest revision is the current one. The last 50 are kept; orch module show and diff accept --revision N.',
  ],
  access: 'viewer',
  columns: REVISION_COLUMNS,
  args: { name: argument('MODULE', 'name of the module', 'module') },
  run: async (context, { name }) => {
    const api = await context.api();
    const body = await api.call('listModuleRevisions', { params: { name }, signal: context.signal });
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
          sha256.slice(0, 12),
        ]),
        empty: 'No revisions.',
      },
    };
  },
});

/** `orch module remove`. */
export const removeModule = defineCommand({
  examples: ['orch module remove nginx'],
  detail: ['Deletes all revisions. Applied resources stay until an apply without the module removes them.'],
  access: 'operator',
  consent: true,
  args: { name: argument('MODULE', 'name of the module', 'module') },
  run: async (context, { name }) => {
    const api = await context.api();
    await api.call('getModule', { params: { name }, signal: context.signal });
    await context.prompt.consent(`Delete the module ${name} with all its revisions?`);
    await api.call('removeModule', { params: { name }, signal: context.signal });
    return { names: [name], view: lines(`Deleted ${name}.`) };
  },
});

/** `orch module schema`. */
export const printModuleSchema = defineCommand({
  examples: ['orch module schema > orch-module.schema.json', 'orch module schema --out orch-module.schema.json'],
  detail: ['Editors with JSON Schema support use it to complete and check *.orch.yaml files.'],
  access: 'local',
  options: { out: text('FILE', 'write it to a new file', { completes: 'file' }) },
  run: async (_context, { out }) => {
    const { moduleJsonSchema } = await import('../../language/schema.js');
    const schema = moduleJsonSchema();
    const json = JSON.stringify(schema, null, 2);
    if (out === undefined) return { body: schema, view: linesOf(textLines(json)) };
    createFile(out, `${json}\n`);
    return { names: [out], view: lines(`Wrote ${out}.`) };
  },
});
