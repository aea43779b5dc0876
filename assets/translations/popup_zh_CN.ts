<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>popup</name>
    <message>
        <source>checks holds {value}, but it may only hold {known}.</source>
        <translation>checks 中有 {value}，但只能包含 {known}。</translation>
    </message>
    <message>
        <source>Changes</source>
        <translation>更改</translation>
    </message>
    <message>
        <source>Result</source>
        <translation>结果</translation>
    </message>
    <message>
        <source>Source</source>
        <translation>原文</translation>
    </message>
    <message>
        <source>To-dos</source>
        <translation>待办事项</translation>
    </message>
    <message>
        <source>Previous change</source>
        <translation>上一处更改</translation>
    </message>
    <message>
        <source>Next change</source>
        <translation>下一处更改</translation>
    </message>
    <message>
        <source>Use this change, or not</source>
        <translation>采用或不采用这处更改</translation>
    </message>
    <message>
        <source>Use all changes, or none</source>
        <translation>全部采用或全部不采用</translation>
    </message>
    <message>
        <source>Nothing was changed</source>
        <translation>没有改动</translation>
    </message>
    <message>
        <source>{used} of {count} used</source>
        <translation>已采用 {used} / {count} 处</translation>
    </message>
    <message>
        <source>{used} of {count} used; compared in large parts</source>
        <translation>已采用 {used} / {count} 处（按大段比较）</translation>
    </message>
    <message>
        <source>Added: {text}</source>
        <translation>新增：{text}</translation>
    </message>
    <message>
        <source>Removed: {text}</source>
        <translation>删除：{text}</translation>
    </message>
    <message>
        <source>{before} becomes {after}</source>
        <translation>{before} 改为 {after}</translation>
    </message>
    <message>
        <source>used</source>
        <translation>已采用</translation>
    </message>
    <message>
        <source>not used</source>
        <translation>未采用</translation>
    </message>
    <message>
        <source>Change {number} of {count}</source>
        <translation>第 {number} 处更改，共 {count} 处</translation>
    </message>
    <message>
        <source>Click to keep your own words here</source>
        <translation>点击以保留您的原话</translation>
    </message>
    <message>
        <source>Click to use this change</source>
        <translation>点击以采用这处更改</translation>
    </message>
    <message>
        <source>Please check:</source>
        <translation>请核对：</translation>
    </message>
    <message>
        <source>Line breaks: {before} → {after}</source>
        <translation>换行：{before} → {after}</translation>
    </message>
    <message>
        <source>Not in your text: {text}</source>
        <translation>原文没有：{text}</translation>
    </message>
    <message>
        <source>Missing: {text}</source>
        <translation>缺少：{text}</translation>
    </message>
    <message>
        <source>Show the place</source>
        <translation>显示所在位置</translation>
    </message>
    <message>
        <source>{count} more</source>
        <translation>另有 {count} 项</translation>
    </message>
    <message>
        <source>Left out: {text}</source>
        <translation>已略去：{text}</translation>
    </message>
    <message>
        <source>Show all that the model wrote</source>
        <translation>显示模型写的全部内容</translation>
    </message>
    <message>
        <source>Continue as chat</source>
        <translation>继续对话</translation>
    </message>
    <message>
        <source>Part {part} of {parts}</source>
        <translation>第 {part} 部分，共 {parts} 部分</translation>
    </message>
</context>
</TS>
