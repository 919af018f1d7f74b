/** Turns the finding of a resource into the masked, bounded result that is journaled, reported and shown. */
import type { CommandResult } from '../../resources/command.js';
import type { FieldChange } from '../../resources/kind.js';
import { MAX_RUN_DIFF_CHARACTERS, type Output, type ResourceResult } from '../../resources/result.js';
import type { RunItem } from '../../wire/messages.js';
import { holdsSecrets, type OutputScrub } from './discretion.js';
import { Masking, type Texts } from './masking.js';
import type { Refusal, Target } from './target.js';
import { unifiedDiff } from './unified-diff.js';

type Action = ResourceResult['action'];
export type Status = ResourceResult['status'];

export interface Finding {
  readonly target: Target;
  readonly action: Action;
  readonly status: Status;
  readonly changes?: readonly FieldChange[];
  readonly text?: Texts;
  readonly reason?: string | undefined;
  readonly error?: Refusal;
  /** Output of its command, if it is kept. */
  readonly output?: CommandResult;
  /** True if the thing existed at the first observation of the run; null without one. */
  readonly existed: boolean | null;
}

/** Maximum characters. A whole result stays far below the frame limit of the link. */
const MAX_SENTENCE = 4_096;
const MAX_VALUE = 512;
const MAX_CHANGES = 32;

/** Makes the results of one run, which share a limit for the total length of their diffs. */
export class ItemWriter {
  private readonly scrub: OutputScrub;
  private room = MAX_RUN_DIFF_CHARACTERS;

  /** @param scrub knows the secrets of all resources of the run, because a program may print those of any of them */
  constructor(scrub: OutputScrub) {
    this.scrub = scrub;
  }

  item(finding: Finding, milliseconds: number): RunItem {
    const { target, existed, output } = finding;
    const { module, kind, identity, id, name } = target.source;
    const masking = new Masking(target);
    const changes = (finding.changes ?? []).slice(0, MAX_CHANGES).map((change) => shorten(masking.change(change)));
    const sentence = (text: string) => cut(this.scrub.whole(masking.sentence(text)), MAX_SENTENCE);
    return {
      index: target.index,
      existed,
      result: {
        module,
        kind,
        identity,
        id,
        name,
        action: finding.action,
        status: finding.status,
        changes,
        diff: this.diff(finding, masking),
        sensitive: holdsSecrets(target),
        reason: finding.reason === undefined ? null : sentence(finding.reason),
        error: finding.error ? { code: finding.error.code, message: sentence(finding.error.message) } : null,
        duration_ms: Math.max(0, Math.round(milliseconds)),
      },
      ...(output ? { output: shownOutput(output, this.scrub) } : {}),
    };
  }

  private diff({ target, text, action }: Finding, masking: Masking): string | null {
    if (!text) return null;
    const shown = masking.texts(text);
    const before = shown.before ?? (action === 'create' ? null : '');
    const diff = unifiedDiff({ path: target.source.identity, before, after: shown.after });
    if (diff === null || diff.length <= this.room) {
      this.room -= diff?.length ?? 0;
      return diff;
    }
    return `… ${diff.length} characters are not shown, because this run changes very much\n`;
  }
}

const shorten = ({ field, before, after }: FieldChange): FieldChange => ({
  field: cut(field, MAX_VALUE),
  before: before === null ? null : cut(before, MAX_VALUE),
  after: after === null ? null : cut(after, MAX_VALUE),
});

const cut = (text: string, length: number): string => (text.length <= length ? text : `${text.slice(0, length - 1)}…`);

/** Maximum bytes of one stream as JSON, so that both streams fit into a frame of the link however many escapes they need. */
const MAX_JSON = 300 * 1024;

const CUT = '\n… the middle is left out …\n';

export function shownOutput({ stdout, stderr, truncated, end }: CommandResult, scrub: OutputScrub): Output {
  const streams = [stdout, stderr].map((text) => bounded(scrub.stream(text)));
  return {
    stdout: streams[0]?.text ?? '',
    stderr: streams[1]?.text ?? '',
    exit_code: end.how === 'exited' ? end.code : null,
    truncated: truncated || streams.some(({ isCut }) => isCut),
  };
}

/** Cuts the middle out of a text that is too long as JSON, where control characters take six characters each. */
function bounded(text: string): { readonly text: string; readonly isCut: boolean } {
  let half = Math.ceil(text.length / 2);
  let shown = text;
  while (jsonBytes(shown) > MAX_JSON) {
    half = Math.floor((half * MAX_JSON) / (jsonBytes(shown) + 1));
    shown = `${text.slice(0, half)}${CUT}${text.slice(text.length - half)}`;
  }
  return { text: shown, isCut: shown !== text };
}

const jsonBytes = (text: string): number => new TextEncoder().encode(JSON.stringify(text)).length;
