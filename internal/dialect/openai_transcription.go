package dialect

import "github.com/weirgate/weir/internal/jsonscan"

const (
	transcriptText = own + iota
	transcriptWhole
)

// openai.transcription: speech to text, and its translation. vLLM streams it in
// the form of chat chunks.
var _ = register(&Dialect{
	Name:      "openai.transcription",
	Operation: "transcription",
	paths:     []string{"audio/transcriptions", "audio/translations"},
	keys:      []string{"file"},
	answer: []string{
		transcriptText - own:  "delta|choices[].delta.content",
		transcriptWhole - own: "text",
	},
	value: func(r *Response, v jsonscan.Value) {
		if v.Field == transcriptText || r.inBody {
			r.output(&v)
		}
	},
	settle: func(r *Response) {
		switch string(r.ev.kind) {
		case "transcript.text.done":
			r.ev.own, r.ev.terminal = true, true
		case "error":
			r.fail()
		}
	},
	plainText: true, // response_format text, srt and vtt
	refusal:   openAIRefusal,
})
