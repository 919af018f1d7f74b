/** The content of files: the fields that give it, and how a file differs from it. */
import * as Type from 'typebox';
import { optional } from '../kernel/schema.js';
import { MAX_CONTENT_BYTES, type ObserveRequest, type PathFact, type SourceFile } from './host.js';
import type { BodyProblem, FieldChange } from './kind.js';

/** Fields of a file that give its content. */
export const contentFields = {
  content: optional(Type.String({ description: 'The whole content; null: not managed' })),
  template: optional(
    Type.String({
      minLength: 1,
      description:
        'Id of a top-level template that gives the content, or a file beside the module that ends in .liquid',
    }),
  ),
  source: optional(Type.String({ minLength: 1, description: 'File beside the module that is the content; any bytes' })),
  url: optional(
    Type.String({ minLength: 1, maxLength: 2048, description: 'Address that the machine downloads the content from' }),
  ),
  sha256: optional(
    Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'The SHA-256 of the file at `url`, in 64 hex digits; orch adds that of `source`',
    }),
  ),
};

/** Fields on the link that name a file: `sha256` belongs to `source` or `url`. */
interface FileFields {
  readonly source?: string | null;
  readonly url?: string | null;
  readonly sha256?: string | null;
}

/** The fields on the link: `content` holds a filled template. */
interface ContentBody extends FileFields {
  readonly content?: string | null;
  readonly template?: string | null;
}

/** Returns why the fields cannot give the content of a file; empty when they can. */
export function checkContent(body: ContentBody): readonly BodyProblem[] {
  const [first, second] = (['content', 'template', 'source', 'url'] as const).filter((name) => body[name] != null);
  return [
    ...checkText(body.content ?? ''),
    ...(second === undefined ? [] : [{ path: `/${second}`, message: `${first} and ${second} exclude each other` }]),
    ...checkDownload(body),
  ];
}

/** Returns why `url` and `sha256` name no download; empty when they do, or when both are absent. */
export function checkDownload({ url, source, sha256 }: FileFields): readonly BodyProblem[] {
  const address = url == null ? null : problemOfUrl(url);
  return [
    ...(address === null ? [] : [{ path: '/url', message: address }]),
    ...(url != null && sha256 == null
      ? [{ path: '/url', message: 'url needs sha256, the SHA-256 of the file, as sha256sum prints it' }]
      : []),
    ...(sha256 != null && url == null && source == null
      ? [{ path: '/sha256', message: 'sha256 belongs to url, the address of the file' }]
      : []),
  ];
}

/** Returns why a text cannot be the address of a download, or null. */
export function problemOfUrl(text: string, field = 'url'): string | null {
  const [, authority] = /^https?:\/\/([^/?#]+)/i.exec(text) ?? [];
  if (authority === undefined) return `${field} must begin with https:// or http:// and a host`;
  if (authority.includes('@')) return `${field} must hold no user and password, which plans would show`;
  return /[\s\p{Cc}]/u.test(text) ? `${field} must hold no blanks; write %20` : null;
}

/** Returns the wanted content of a file: a text, or a file that is brought to the machine; null when it is not managed. */
export function wantedContent(body: ContentBody): string | SourceFile | null {
  return wantedFile(body) ?? body.content ?? null;
}

/** Returns the file that a body takes as content; null for none. */
export function wantedFile({ source, url, sha256 }: FileFields): SourceFile | null {
  if (sha256 == null) return null;
  if (url != null) return { source: url, sha256, url };
  return source == null ? null : { source, sha256 };
}

/** Returns what has to be read of a file to compare it with the wanted content. */
export function neededContent(body: ContentBody): ObserveRequest['content'] {
  const want = wantedContent(body);
  return typeof want === 'object' && want !== null ? 'digest' : want !== null;
}

/** Returns why a text cannot be the content of a file; empty when it can. */
export function checkText(text: string): readonly BodyProblem[] {
  const problems: BodyProblem[] = [];
  // UTF-8 cannot encode half of a surrogate pair.
  if (!text.isWellFormed()) problems.push({ path: '/content', message: 'content is not valid Unicode text' });
  if (isLongerThan(text, MAX_CONTENT_BYTES)) {
    problems.push({ path: '/content', message: `content is larger than ${MAX_CONTENT_BYTES} bytes` });
  }
  return problems;
}

/** True when a text has more bytes than that in UTF-8. Code units take a tenth of the time of characters. */
export function isLongerThan(text: string, bytes: number): boolean {
  if (text.length * 3 <= bytes) return false;
  if (text.length > bytes) return true;
  let size = text.length;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code >= 0x80) size += code >= 0x800 && (code < 0xd800 || code > 0xdfff) ? 2 : 1;
  }
  return size > bytes;
}

/** The difference between a file's content and the wanted one. */
interface ContentComparison {
  readonly changes: readonly FieldChange[];
  /** Absent for content that is no text. */
  readonly text?: { readonly before: string | null; readonly after: string };
}

/** Returns null when the content is equal or not managed. */
export function compareContent(
  want: string | SourceFile | null,
  have: Extract<PathFact, { type: 'file' }>,
): ContentComparison | null {
  if (want === null) return null;
  const { content } = have;
  if (typeof want === 'object') {
    if (content.kind === 'digest' && content.sha256 === want.sha256) return null;
    const before = content.kind === 'digest' ? `${have.size} bytes, ${shortDigest(content)}` : `${have.size} bytes`;
    return { changes: [{ field: 'content', before, after: nameOfSource(want) }] };
  }
  if (content.kind === 'text' && content.text === want) return null;
  const before = content.kind === 'text' ? content.text : null;
  const shown = { text: null, digest: null, binary: 'binary data', 'too-large': `${have.size} bytes`, unread: null };
  return { changes: [{ field: 'content', before: shown[content.kind], after: null }], text: { before, after: want } };
}

/** Returns how a plan shows the content of a file that does not exist yet. */
export function contentOfNew(want: string | SourceFile | null): Partial<ContentComparison> {
  if (want === null) return {};
  if (typeof want === 'string') return { text: { before: null, after: want } };
  return { changes: [{ field: 'content', before: null, after: nameOfSource(want) }] };
}

/** Returns the name of a file with the beginning of its SHA-256, for plans. */
export const nameOfSource = (want: SourceFile): string => `${want.source}, ${shortDigest(want)}`;

/** Characters of a digest in a plan, enough to tell two versions of a file apart. */
const SHOWN = 12;

export const shortDigest = ({ sha256 }: { readonly sha256: string }): string => `SHA-256 ${sha256.slice(0, SHOWN)}…`;
