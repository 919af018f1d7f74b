/** `orch apply --publish`: publishes the files of an apply once it has succeeded. */
import type { ApiClient } from '../../client/api-client.js';
import type { Context } from '../context.js';
import { EXIT } from '../exit-status.js';
import { publishModules } from '../modules/publish.js';
import { type Reach, reachOf, requireAllowed } from '../modules/reach.js';
import type { NamedFile } from '../modules/send-modules.js';
import type { Outcome } from '../outcome.js';
import { withLines } from './run-view.js';

interface Publishing {
  readonly files: readonly NamedFile[];
  /** True with `--allow-automatic-applies`. */
  readonly isAllowed: boolean;
}

/** Throws `confirmation_required` before the apply if the consent to publishing is missing and cannot be asked for. */
export async function requirePublishable(
  context: Context,
  api: ApiClient,
  { files, isAllowed }: Publishing,
): Promise<void> {
  const reaches: Reach[] = [];
  for (const file of files) reaches.push(await reachOf(context, api, file));
  requireAllowed(context, reaches, isAllowed);
}

/** Publishes after an apply that has succeeded. Returns its outcome with a line about each module. */
export async function publishAfter(
  context: Context,
  api: ApiClient,
  outcome: Outcome,
  publishing: Publishing | null,
): Promise<Outcome> {
  if (publishing === null) return outcome;
  const { files, isAllowed } = publishing;
  const names = files.map(({ name }) => name).join(', ');
  const { exitStatus = EXIT.done } = outcome;
  if (exitStatus !== EXIT.done && exitStatus !== EXIT.changes) {
    context.warn(`${names} not published, because the apply has not succeeded`);
    return outcome;
  }
  const published = await publishModules(context, api, files, { isAllowed });
  if (published === null) {
    context.warn(`${names} not published: the apply stays, and its machines are on trial`);
    return outcome;
  }
  return withLines(
    outcome,
    published.map(({ name, revision }) => `Published module ${name}, revision ${revision}.`),
  );
}
