/** The argument that names an agent, or several. */
import { argument, argumentList } from '../argument.js';

const SUMMARY = 'agent name, node ID, or a unique beginning of one (4 characters or more)';

export const nodeArgument = argument('NODE', SUMMARY, 'node');
export const nodesArgument = argumentList('NODE', SUMMARY, 'node');
