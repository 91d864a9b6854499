// Counts the tokens of the corpus of internal/estimate with real tokenizers. The packages carry their vocabularies.
//
//   go run ./internal/estimate/testdata/corpus/dump | node count.mjs > internal/estimate/testdata/counts.tsv
//   go run ./internal/estimate/testdata/corpus/dump | node count.mjs --check internal/estimate/testdata/counts.tsv
//
// Each request body is parsed and laid out as the model's chat template does it, and the sum of the tokens printed: a
// line for each request, columns apart by tabs. A token that the template marks as special counts one.
import {readFileSync} from 'node:fs';
import {createInterface} from 'node:readline';
import {countTokens as o200k} from 'gpt-tokenizer/encoding/o200k_base';
import {countTokens as cl100k} from 'gpt-tokenizer/encoding/cl100k_base';
import llama3 from 'llama3-tokenizer-js';
import mistral from 'mistral-tokenizer-js';

const textOf = (content) => (typeof content === 'string' ? content : content.map((part) => part.text).join(''));

// How functions are shown to models of the o200k and cl100k vocabularies: as a TypeScript namespace.
function asTypeScript(tools) {
	let out = '# Tools\n\n## functions\n\nnamespace functions {\n\n';
	for (const {function: f} of tools) {
		out += `// ${f.description}\ntype ${f.name} = (_: {\n`;
		for (const [name, p] of Object.entries(f.parameters.properties)) {
			if (p.description) out += `// ${p.description}\n`;
			const type = p.enum ? p.enum.map((v) => JSON.stringify(v)).join(' | ') : p.type === 'integer' ? 'number' : p.type;
			out += `${name}${f.parameters.required.includes(name) ? '' : '?'}: ${type},\n`;
		}
		out += '}) => any;\n\n';
	}
	return out + '} // namespace functions';
}

// <|im_start|>role<|im_sep|>content<|im_end|> for each message, and the beginning of the answer.
function chatML(count) {
	return ({messages, tools}) => {
		let n = 3;
		for (const m of messages) n += 3 + count(m.role) + count(textOf(m.content));
		if (tools) n += 3 + count('system') + count(asTypeScript(tools));
		return n;
	};
}

// <|start_header_id|>role<|end_header_id|>\n\ncontent<|eot_id|>, functions as JSON in front of the first user message.
function llama({messages, tools}) {
	const count = (text) => llama3.encode(text, {bos: false, eos: false}).length;
	let n = 1 + 3 + count('assistant');
	let unseen = tools;
	for (const m of messages) {
		let text = textOf(m.content);
		if (unseen && m.role === 'user') {
			text = 'Given the following functions, please respond with a JSON for a function call with its proper arguments that best ' +
				'answers the given prompt.\n\n' + unseen.map((t) => JSON.stringify(t, null, 4)).join('\n\n') + '\n\n' + text;
			unseen = undefined;
		}
		n += 3 + count(m.role) + count('\n\n' + text);
	}
	return n;
}

// <s>[INST] question [/INST] answer</s>, the system prompt in front of the first question.
function inst({messages, tools}) {
	const count = (text) => mistral.encode(text, false, true).length;
	let n = 1;
	let before = '';
	if (tools) n += 2 + count(JSON.stringify(tools));
	for (const m of messages) {
		const text = textOf(m.content);
		if (m.role === 'system') before = text + '\n\n';
		else if (m.role === 'user') {
			n += count(`[INST] ${before}${text} [/INST]`);
			before = '';
		} else n += 1 + count(text);
	}
	return n;
}

const models = {o200k: chatML(o200k), cl100k: chatML(cl100k), llama3: llama, mistral: inst};

const lines = [['half', 'name', 'sha256', ...Object.keys(models)].join('\t')];
for await (const line of createInterface({input: process.stdin})) {
	const {half, name, sha256, body} = JSON.parse(line);
	const request = JSON.parse(body);
	lines.push([half, name, sha256, ...Object.values(models).map((count) => count(request))].join('\t'));
}
if (lines.length === 1) {
	console.error('count: no request came in; pipe the output of dump into this script');
	process.exit(1);
}

if (process.argv[2] !== '--check') {
	console.log(lines.join('\n'));
} else {
	const kept = readFileSync(process.argv[3], 'utf8').trimEnd().split('\n');
	let failed = Math.abs(kept.length - lines.length);
	for (let i = 0; i < Math.min(kept.length, lines.length); i++) {
		if (kept[i] === lines[i]) continue;
		if (failed++ < 5) console.log(`line ${i + 1}: kept\n  ${kept[i]}\nbut counted\n  ${lines[i]}`);
	}
	console.log(`${lines.length - Math.min(failed, lines.length)} passed, ${failed} failed`);
	process.exit(failed ? 1 : 0);
}
