<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>app</name>
    <message>
        <source>{key} is &quot;{value}&quot;, but it must be one of {known}.</source>
        <translation>{key} 的值是“{value}”，但必须是 {known} 之一。</translation>
    </message>
    <message>
        <source>part_tokens is {value}, but it must be at least {least}.</source>
        <translation>part_tokens 的值是 {value}，但至少为 {least}。</translation>
    </message>
    <message>
        <source>{where} has no {placeholder}, so the model would never see the text. Add it.</source>
        <translation>{where} 中没有 {placeholder}，模型就看不到文字。请加上。</translation>
    </message>
    <message>
        <source>Putting the answers together: {number} of {of}</source>
        <translation>正在汇总：第 {number} 步，共 {of} 步</translation>
    </message>
    <message>
        <source>Putting the answers together</source>
        <translation>正在汇总各部分的结果</translation>
    </message>
    <message>
        <source>all {tokens} tokens in {parts} parts</source>
        <translation>全文 {tokens} 个词元，分 {parts} 部分处理</translation>
    </message>
    <message>
        <source>about {tokens} tokens, all of them, in {parts} parts</source>
        <translation>全文约 {tokens} 个词元，分 {parts} 部分处理</translation>
    </message>
    <message>
        <source>{done} of {parts} parts done</source>
        <translation>已完成 {done}/{parts} 部分</translation>
    </message>
    <message>
        <source>{done} of {parts} parts read, not yet put together</source>
        <translation>已读完 {done}/{parts} 部分，尚未汇总</translation>
    </message>
    <message>
        <source>Length limit in parts {numbers}</source>
        <translation>部分 {numbers} 达到长度上限</translation>
    </message>
    <message>
        <source>The text is longer than the model can hold at once, so it is done in parts.</source>
        <translation>文字超出模型一次能处理的长度，因此分部分处理。</translation>
    </message>
    <message>
        <source>{done} of {parts} parts are done and kept; “Try again” goes on behind them.</source>
        <translation>{parts} 部分中已完成 {done} 部分并已保留；点“重试”会接着往下处理。</translation>
    </message>
    <message>
        <source>The pattern is no regular expression: {reason}.</source>
        <translation>pattern 不是有效的正则表达式：{reason}。</translation>
    </message>
</context>
</TS>
