/** `orch ops output`. */
import type { SuccessBody } from '../../../client/request.js';
import { defineCommand } from '../../define-command.js';
import { outputLines } from '../../render/output.js';
import { headed, lines, linesOf, stackOf, type View } from '../../view.js';
import { operationArgument } from './operation-argument.js';

type Output = SuccessBody<'getOperationOutput'>['output'][string];

export const command = defineCommand({
  examples: ['orch ops output 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: ['What scripts printed, by module and identity. Control characters are shown, not obeyed.'],
  access: 'operator',
  args: { id: operationArgument },
  run: async (context, { id }) => {
    const { signal } = context;
    const api = await context.api();
    const { node_id } = await api.call('getOperation', { params: { operation_id: id }, signal });
    const body = await api.call('getOperationOutput', { params: { node_id, operation_id: id }, signal });
    const scripts = Object.keys(body.output).sort();
    return {
      body,
      names: scripts,
      view:
        scripts.length === 0
          ? lines('No script of this operation printed anything.')
          : stackOf(scripts.flatMap((name) => outputView(name, body.output[name]))),
    };
  },
});

const outputView = (name: string, output: Output | undefined): readonly View[] =>
  output === undefined ? [] : [headed(name, linesOf(outputLines(output)))];
