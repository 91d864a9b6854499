package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

var anthropicScenarios = []scenario{
	{"messages_stream", func(url, run string, s *seen) error { return messagesStream(url, run, s, turn(24)) }},
	{"messages_stream_tools", func(url, run string, s *seen) error {
		p := turn(400) // room for whole arguments
		p.ToolChoice.OfAny = &anthropic.ToolChoiceAnyParam{}
		p.Tools = []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{
			Properties: map[string]any{"city": map[string]any{"type": "string"}}, Required: []string{"city"},
		}, "weather")}
		return messagesStream(url, run, s, p)
	}},
	{"messages_json", messagesJSON},
	{"early_close", anthropicEarlyClose},
	{"error_400", anthropicError(400)},
	{"error_529", anthropicError(529)},
}

func anthropicClient(url, run string) anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey("sk-check"), option.WithMaxRetries(0),
		option.WithRequestTimeout(time.Minute), option.WithHeader("X-Weir-Run", run))
}

func turn(maxTokens int64) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model:     model,
		MaxTokens: maxTokens,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Name three rivers."))},
	}
}

func messagesStream(url, run string, s *seen, p anthropic.MessageNewParams) error {
	c := anthropicClient(url, run)
	stream := c.Messages.NewStreaming(context.Background(), p)
	defer stream.Close()
	var message anthropic.Message
	for stream.Next() {
		event := stream.Current()
		if err := message.Accumulate(event); err != nil {
			return err
		}
		switch event.Type {
		case "content_block_start":
			if event.ContentBlock.Type == "tool_use" {
				s.tool(event.ContentBlock.Name, "")
			}
		case "content_block_delta":
			s.add(&s.Text, event.Delta.Text)
			s.add(&s.Reasoning, event.Delta.Thinking)
			s.tool("", event.Delta.PartialJSON)
		}
	}
	messagesEnd(message, s)
	return stream.Err()
}

func messagesEnd(m anthropic.Message, s *seen) {
	s.usage(m.Usage.InputTokens+m.Usage.CacheReadInputTokens+m.Usage.CacheCreationInputTokens, m.Usage.OutputTokens)
	s.finish(string(m.StopReason))
}

func messagesJSON(url, run string, s *seen) error {
	c := anthropicClient(url, run)
	message, err := c.Messages.New(context.Background(), turn(24))
	if err != nil {
		return err
	}
	for _, block := range message.Content {
		s.Text += block.Text
	}
	messagesEnd(*message, s)
	return nil
}

func anthropicEarlyClose(url, run string, s *seen) error {
	c := anthropicClient(url, run)
	stream := c.Messages.NewStreaming(context.Background(), turn(2000))
	for stream.Next() {
		if stream.Current().Type == "content_block_delta" {
			s.token()
			break
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	return stream.Close()
}

func anthropicError(status int) func(url, run string, s *seen) error {
	return func(url, run string, s *seen) error {
		c := anthropicClient(url, run)
		stream := c.Messages.NewStreaming(context.Background(), turn(24),
			option.WithHeader("X-Answer-Status", strconv.Itoa(status)))
		defer stream.Close()
		for stream.Next() {
			s.add(&s.Text, "answer")
		}
		if e, ok := errors.AsType[*anthropic.Error](stream.Err()); ok {
			s.Error = []any{fmt.Sprintf("%T", e), e.StatusCode, string(e.Type())}
			return nil
		}
		return stream.Err()
	}
}
