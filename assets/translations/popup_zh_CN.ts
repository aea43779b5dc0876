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
        <translation>没有更改</translation>
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
        <translation>单击以保留您的原话</translation>
    </message>
    <message>
        <source>Click to use this change</source>
        <translation>单击以采用这处更改</translation>
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
        <source>Not translated: {text}</source>
        <translation>未翻译：{text}</translation>
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
    <message>
        <source>Copy as</source>
        <translation>复制为</translation>
    </message>
    <message>
        <source>Copy or save what is not ticked ({keys})</source>
        <translation>复制或保存未勾选的事项（{keys}）</translation>
    </message>
    <message>
        <source>Copy as Markdown</source>
        <translation>复制为 Markdown</translation>
    </message>
    <message>
        <source>Copy as JSON</source>
        <translation>复制为 JSON</translation>
    </message>
    <message>
        <source>Copy as calendar entries (.ics)</source>
        <translation>复制为日历条目（.ics）</translation>
    </message>
    <message>
        <source>Save as a calendar file (.ics)…</source>
        <translation>保存为日历文件（.ics）…</translation>
    </message>
    <message>
        <source>Save the to-dos</source>
        <translation>保存待办事项</translation>
    </message>
    <message>
        <source>{path} cannot be written: {reason}</source>
        <translation>无法写入 {path}：{reason}</translation>
    </message>
    <message>
        <source>The file was not saved</source>
        <translation>文件未保存</translation>
    </message>
    <message>
        <source>No to-dos found</source>
        <translation>没有找到待办事项</translation>
    </message>
    <message>
        <source>{left} of {count} open</source>
        <translation>{left} / {count} 项未完成</translation>
    </message>
</context>
</TS>
