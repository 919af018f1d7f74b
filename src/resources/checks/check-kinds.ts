/** The kinds of health checks: the schemas of their bodies, rules beyond these, and their names in reports. */
import * as Type from 'typebox';
import { closed, optional } from '../../kernel/schema.js';
import { escapePointer, type Problem, type Validator, validator } from '../../kernel/validator.js';
import { PROGRAMS, programPlatforms } from '../script.js';

const scriptSchema = closed(
  {
    program: Type.Enum(PROGRAMS, { description: 'What runs the text' }),
    run: Type.String({ minLength: 1, maxLength: 65_536, description: 'Exit status 0 says that all is well' }),
  },
  { title: 'Check by script' },
);

const STATUS = '^(?:[1-5]xx|[1-5]\\d\\d(?:-[1-5]\\d\\d)?)$';

const httpSchema = closed(
  {
    url: Type.String({
      minLength: 1,
      maxLength: 2048,
      pattern: '^https?://.',
      description: 'A URL that begins with http:// or https://',
    }),
    status: optional(
      Type.Union([
        Type.Integer({ minimum: 100, maximum: 599 }),
        Type.String({
          pattern: STATUS,
          description: 'A status of the answer, such as 200, "2xx" or "200-204" [default: 200-399]',
        }),
      ]),
    ),
    contains: optional(
      Type.String({ minLength: 1, maxLength: 1024, description: 'Text that the body of the answer contains' }),
    ),
    headers: optional(
      closed(
        {},
        {
          description: 'Headers of the request',
          maxProperties: 16,
          patternProperties: {
            '^': Type.String({
              maxLength: 4096,
              pattern: '^[\\t\\x20-\\x7e]*$',
              description: 'Printable ASCII on one line',
            }),
          },
        },
      ),
    ),
    insecure: optional(Type.Boolean({ description: 'true accepts any TLS certificate' })),
    follow_redirects: optional(Type.Boolean({ description: 'true follows up to 5 redirects' })),
  },
  { title: 'Check by HTTP' },
);

const tcpSchema = closed(
  {
    host: Type.String({
      minLength: 1,
      maxLength: 255,
      pattern: '^[^\\s/]+$',
      description: 'A host name or IP address',
    }),
    port: Type.Union([
      Type.Integer({ minimum: 1, maximum: 65_535 }),
      Type.String({ pattern: '^\\d{1,5}$', description: 'A port from 1 to 65535' }),
    ]),
  },
  { title: 'Check by TCP' },
);

const unitSchema = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: '^[A-Za-z0-9_@:.\\\\][A-Za-z0-9_@:.\\\\ -]*$',
  description: 'The name of a systemd unit, launchd service or Windows service',
});

/** Schemas of what stands behind the key of each kind in a module. */
export const CHECK_SCHEMAS = { script: scriptSchema, http: httpSchema, tcp: tcpSchema, unit: unitSchema } as const;
export type CheckKind = keyof typeof CHECK_SCHEMAS;
export const CHECK_KINDS = Object.keys(CHECK_SCHEMAS) as readonly CheckKind[];

/** Validators of the same values, with every expression filled in. */
export const CHECK_VALIDATORS: Readonly<Record<CheckKind, Validator<unknown>>> = {
  script: validator(scriptSchema),
  http: validator(httpSchema),
  tcp: validator(tcpSchema),
  unit: validator(unitSchema),
};

/** Bodies of checks by kind, as `DesiredCheck` holds them. */
export interface CheckBodies {
  readonly script: Type.Static<typeof scriptSchema>;
  readonly http: Type.Static<typeof httpSchema>;
  readonly tcp: Type.Static<typeof tcpSchema>;
  readonly unit: { readonly name: string };
}

/** Returns the rules that a schema cannot express, for a body with every expression filled in. */
export function checkProblems(kind: CheckKind, value: unknown): readonly Problem[] {
  if (typeof value !== 'object' || value === null) return [];
  const field = (name: string): unknown => Reflect.get(value, name);
  const problems: Problem[] = [];
  const problem = (path: string, message: string) => problems.push({ path, message });
  if (kind === 'script' && String(field('run')).includes('\0')) {
    problem('/run', 'run must not contain a NUL character');
  }
  if (kind === 'tcp') {
    const port = Number(field('port'));
    if (port < 1 || port > 65_535) problem('/port', `port must be from 1 to 65535, but this is ${port}`);
  }
  if (kind === 'http') {
    const url = String(field('url'));
    if (CREDENTIALS.test(url)) {
      problem('/url', 'url must not hold a user name or password; send an Authorization header');
    } else if (!URL.test(url)) {
      problem('/url', 'url must be like http://HOST, http://HOST:PORT/PATH or https://HOST/PATH, without spaces');
    }
    const headers = field('headers');
    for (const name of typeof headers === 'object' && headers !== null ? Object.keys(headers) : []) {
      if (!HEADER.test(name))
        problem(`/headers/${escapePointer(name)}`, `"${name.slice(0, 64)}" is not the name of a header`);
    }
    const { from, to } = expectedStatus(field('status'));
    if (from > to) problem('/status', `status must be a range from low to high, but this is ${from}-${to}`);
  }
  return problems;
}

const HEADER = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/;
const CREDENTIALS = /^https?:\/\/[^/?#]*@/;
const URL = /^https?:\/\/(?:\[[0-9A-Fa-f:.]+\]|[^\s/?#:@[\]]+)(?::\d{1,5})?(?:[/?#]\S*)?$/;

/** Inclusive bounds of the expected status, and the words for it in messages. */
export interface ExpectedStatus {
  readonly from: number;
  readonly to: number;
  readonly words: string;
}

/** Parses a valid `status`. */
export function expectedStatus(status: unknown): ExpectedStatus {
  if (status == null) return { from: 200, to: 399, words: '2xx or 3xx' };
  const words = String(status);
  if (words.endsWith('xx')) {
    const hundred = Number(words.charAt(0)) * 100;
    return { from: hundred, to: hundred + 99, words };
  }
  const [from = 0, to = from] = words.split('-').map(Number);
  return { from, to, words };
}

/** Platforms on which scripts of a program run; all for other kinds. */
export const checkPlatforms = (kind: CheckKind, body: Readonly<Record<string, unknown>>): readonly string[] | null => {
  const program = kind === 'script' ? PROGRAMS.find((name) => name === body.program) : undefined;
  return program === undefined ? null : programPlatforms(program);
};

/** Maximum characters of a name that is derived from a body. */
const NAME = 80;

/** Returns the name of a check without one. The body's secrets are masked. */
export function derivedName(kind: CheckKind, body: Readonly<Record<string, unknown>>): string {
  switch (kind) {
    case 'script':
      return cut(`script ${firstLine(String(body.run))}`);
    case 'http':
      return cut(`http ${body.url}`);
    case 'tcp':
      return cut(`tcp ${body.host}:${body.port}`);
    case 'unit':
      return cut(`unit ${body.name}`);
  }
}

const firstLine = (text: string): string =>
  text
    .split('\n')
    .map((line) => line.replaceAll(/\p{Cc}/gu, ' ').trim())
    .find((line) => line !== '' && !line.startsWith('#')) ?? '';

const cut = (text: string): string => (text.length <= NAME ? text : `${text.slice(0, NAME - 1)}…`);
