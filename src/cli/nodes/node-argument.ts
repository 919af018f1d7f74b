/** The argument that names an agent, or several. */
import { argument, optionalList } from '../argument.js';

const SUMMARY = 'agent name, node ID, or a unique beginning of one (4 characters or more)';

export const nodeArgument = argument('NODE', SUMMARY, 'node');
/** Where something else may stand for the agents, such as `--local`. */
export const optionalNodesArgument = optionalList('NODE', `${SUMMARY}, or "web[01-20]"`, 'node');
