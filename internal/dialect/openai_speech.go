package dialect

import "github.com/weirgate/weir/internal/jsonscan"

const speechAudio = own

// openai.speech: text to speech, as raw audio or as events that carry it.
var _ = register(&Dialect{
	Name:      "openai.speech",
	Operation: "speech",
	paths:     []string{"audio/speech"},
	keys:      []string{"input"},
	request:   asked{streamFormat: "stream_format"},
	answer:    []string{speechAudio - own: "audio"},
	value:     func(r *Response, v jsonscan.Value) { r.output(&v) },
	settle: func(r *Response) {
		switch string(r.ev.kind) {
		case "speech.audio.done":
			r.ev.own, r.ev.terminal = true, true
		case "error":
			r.fail()
		}
	},
	audio:   true,
	refusal: openAIRefusal,
})
