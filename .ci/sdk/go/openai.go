package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

var openaiScenarios = []scenario{
	{"chat_stream", func(url, run string, s *seen) error { return chatStream(openaiClient(url, run), s, chat()) }},
	{"chat_stream_usage", func(url, run string, s *seen) error {
		p := chat()
		p.StreamOptions.IncludeUsage = openai.Bool(true)
		return chatStream(openaiClient(url, run), s, p)
	}},
	{"chat_stream_tools", func(url, run string, s *seen) error {
		p := chat()
		p.StreamOptions.IncludeUsage = openai.Bool(true)
		p.MaxTokens = openai.Int(400) // room for whole arguments
		p.ToolChoice.OfAuto = openai.String("required")
		p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: "weather", Parameters: shared.FunctionParameters{"type": "object",
				"properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"}},
		})}
		return chatStream(openaiClient(url, run), s, p)
	}},
	{"chat_json", chatJSON},
	{"completions_stream", completionsStream},
	{"completions_json", completionsJSON},
	{"responses_stream", responsesStream},
	{"embeddings", embeddings},
	{"early_close", openaiEarlyClose},
	{"error_400", openaiError(400)},
	{"error_429", openaiError(429)},
	{"error_500", openaiError(500)},
}

func openaiClient(url, run string) openai.Client {
	return openai.NewClient(option.WithBaseURL(url+"/v1/"), option.WithAPIKey("sk-check"), option.WithMaxRetries(0),
		option.WithRequestTimeout(time.Minute), option.WithHeader("X-Weir-Run", run))
}

func chat() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:       model,
		Messages:    []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Name three rivers.")},
		MaxTokens:   openai.Int(24),
		Temperature: openai.Float(0),
		Seed:        openai.Int(7),
	}
}

func chatStream(c openai.Client, s *seen, p openai.ChatCompletionNewParams) error {
	stream := c.Chat.Completions.NewStreaming(context.Background(), p)
	defer stream.Close()
	for stream.Next() {
		chunk := stream.Current()
		for _, choice := range chunk.Choices {
			for _, name := range []string{"reasoning", "reasoning_content"} { // not fields of the official API
				var text string
				if f, ok := choice.Delta.JSON.ExtraFields[name]; ok && json.Unmarshal([]byte(f.Raw()), &text) == nil && text != "" {
					s.add(&s.Reasoning, text)
					break
				}
			}
			s.add(&s.Text, choice.Delta.Content)
			for _, call := range choice.Delta.ToolCalls {
				s.tool(call.Function.Name, call.Function.Arguments)
			}
			s.finish(choice.FinishReason)
		}
		if chunk.JSON.Usage.Valid() {
			s.usage(chunk.Usage.PromptTokens, chunk.Usage.CompletionTokens)
		}
	}
	return stream.Err()
}

func chatJSON(url, run string, s *seen) error {
	c := openaiClient(url, run)
	answer, err := c.Chat.Completions.New(context.Background(), chat())
	if err != nil {
		return err
	}
	s.Text = answer.Choices[0].Message.Content
	s.finish(answer.Choices[0].FinishReason)
	s.usage(answer.Usage.PromptTokens, answer.Usage.CompletionTokens)
	return nil
}

func completion() openai.CompletionNewParams {
	return openai.CompletionNewParams{
		Model:       model,
		Prompt:      openai.CompletionNewParamsPromptUnion{OfString: openai.String("Once upon")},
		MaxTokens:   openai.Int(24),
		Temperature: openai.Float(0),
		Seed:        openai.Int(7),
	}
}

func completionsStream(url, run string, s *seen) error {
	c, p := openaiClient(url, run), completion()
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := c.Completions.NewStreaming(context.Background(), p)
	defer stream.Close()
	for stream.Next() {
		chunk := stream.Current()
		for _, choice := range chunk.Choices {
			s.add(&s.Text, choice.Text)
			s.finish(string(choice.FinishReason))
		}
		if chunk.JSON.Usage.Valid() {
			s.usage(chunk.Usage.PromptTokens, chunk.Usage.CompletionTokens)
		}
	}
	return stream.Err()
}

func completionsJSON(url, run string, s *seen) error {
	c := openaiClient(url, run)
	answer, err := c.Completions.New(context.Background(), completion())
	if err != nil {
		return err
	}
	s.Text = answer.Choices[0].Text
	s.finish(string(answer.Choices[0].FinishReason))
	s.usage(answer.Usage.PromptTokens, answer.Usage.CompletionTokens)
	return nil
}

func responsesStream(url, run string, s *seen) error {
	c := openaiClient(url, run)
	stream := c.Responses.NewStreaming(context.Background(), responses.ResponseNewParams{
		Model:           model,
		Input:           responses.ResponseNewParamsInputUnion{OfString: openai.String("Name three rivers.")},
		MaxOutputTokens: openai.Int(24),
		Temperature:     openai.Float(0),
	})
	defer stream.Close()
	for stream.Next() {
		switch event := stream.Current(); {
		case event.Type == "response.output_text.delta":
			s.add(&s.Text, event.Delta)
		case strings.HasPrefix(event.Type, "response.reasoning") && strings.HasSuffix(event.Type, ".delta"):
			s.add(&s.Reasoning, event.Delta)
		case event.Type == "response.completed" || event.Type == "response.incomplete":
			s.usage(event.Response.Usage.InputTokens, event.Response.Usage.OutputTokens)
		}
	}
	return stream.Err()
}

func embeddings(url, run string, s *seen) error {
	c := openaiClient(url, run)
	answer, err := c.Embeddings.New(context.Background(), openai.EmbeddingNewParams{
		Model: model,
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a river", "a weir"}},
	})
	if err != nil {
		return err
	}
	sum := 0.0
	for _, x := range answer.Data[0].Embedding {
		sum += math.Abs(x)
	}
	s.Text = fmt.Sprintf("%d embeddings of %d, sum %.6f", len(answer.Data), len(answer.Data[0].Embedding), sum)
	s.Input = &answer.Usage.PromptTokens
	return nil
}

func openaiEarlyClose(url, run string, s *seen) error {
	c, p := openaiClient(url, run), chat()
	p.MaxTokens = openai.Int(2000)
	stream := c.Chat.Completions.NewStreaming(context.Background(), p)
	for stream.Next() {
		if chunk := stream.Current(); len(chunk.Choices) > 0 && chunk.Choices[0].Delta.Content != "" {
			s.token()
			break
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	return stream.Close()
}

func openaiError(status int) func(url, run string, s *seen) error {
	return func(url, run string, s *seen) error {
		c := openaiClient(url, run)
		stream := c.Chat.Completions.NewStreaming(context.Background(), chat(),
			option.WithHeader("X-Answer-Status", strconv.Itoa(status)))
		defer stream.Close()
		for stream.Next() {
			s.add(&s.Text, "answer")
		}
		if e, ok := errors.AsType[*openai.Error](stream.Err()); ok {
			s.Error = []any{fmt.Sprintf("%T", e), e.StatusCode, e.Code}
			return nil
		}
		return stream.Err()
	}
}
