/** `orch api`: sends any request of the API. */

import { isFaultCode } from '../../kernel/fault.js';
import { argument, defineCommand } from '../define-command.js';
import { EXIT, type ExitStatus, exitStatusOfCode } from '../exit-status.js';
import { text } from '../options.js';
import { linesOf, textLines } from '../outcome.js';
import { escapeJson } from '../render/terminal-text.js';
import { readInlineOrFile } from '../text-files.js';

export const command = defineCommand({
  examples: [
    'orch api GET /agents',
    'orch api POST /agents/3f2a…/plan --data \'{"modules": ["nginx"]}\'',
    'orch api PUT /agents/3f2a…/tags --data @tags.json',
  ],
  detail: [
    'The path is below /api/v1 and may hold a query. "orch api GET /openapi.json" describes the whole API. Every',
    'answer goes to standard output; the exit status tells whether it was a success.',
  ],
  access: 'viewer',
  args: {
    method: argument('METHOD', 'GET, POST, PUT or DELETE'),
    path: argument('PATH', 'such as /agents or /api/v1/agents?status=pending'),
  },
  options: { data: text('JSON', 'the body: JSON, @FILE, or @- for standard input', { completes: 'file' }) },
  run: async (context, { method, path, data }) => {
    const body = data === undefined ? undefined : await readInlineOrFile(data, context.readInput);
    const api = await context.api();
    const answer = await api.raw(method.toUpperCase(), path, { body, signal: context.signal });
    const value = parseJson(answer.text);
    const shown = value === undefined ? answer.text : escapeJson(JSON.stringify(value, null, 2));
    return {
      ...(answer.text === '' ? {} : { body: value === undefined ? answer.text : value }),
      view: linesOf(textLines(shown)),
      exitStatus: exitStatusOfAnswer(answer.status, value),
    };
  },
});

/** Returns the parsed JSON, or undefined if the text is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function exitStatusOfAnswer(status: number, body: unknown): ExitStatus {
  if (status < 400) return EXIT.done;
  const code = typeof body === 'object' && body !== null && 'code' in body ? body.code : undefined;
  return typeof code === 'string' && isFaultCode(code) ? exitStatusOfCode(code) : EXIT.error;
}
